//! File extensions, and file names without one: they identify a file if the name alone is ambiguous.

/// Known file extensions.
const EXTENSIONS: &str = "xlsx xls xlsm csv tsv txt md pdf doc docx ppt pptx json jsonl xml yaml yml toml html htm css js ts \
tsx py rs go java c h cpp sh sql db sqlite log ini cfg conf zip tar gz png jpg jpeg gif svg bmp webp \
mp3 wav mp4 mov avi parquet ipynb lock bak tmp env vue jsx mjs kt swift rb php scss less proto \
gradle bat rst tex properties dart scala lua eml ics rtf odt tgz jar flac mkv heic tiff \
psd pem crt cer p12 patch orc avro hdf5 epub mobi dwg dxf stl cr2 nef m4a ogg aac webm exe dll deb rpm apk whl pyc \
tf tfvars hcl m4v jsonc ndjson dump";

/// File names without an extension.
const BARE_FILES: [&str; 14] = [
    "Makefile",
    "Dockerfile",
    "Jenkinsfile",
    "Gemfile",
    "Rakefile",
    "Procfile",
    "Vagrantfile",
    "LICENSE",
    "CODEOWNERS",
    ".gitignore",
    ".gitattributes",
    ".dockerignore",
    ".editorconfig",
    ".env",
];

/// Whether a name without an extension is that of a file.
pub(crate) fn is_bare_file(path: &str) -> bool {
    BARE_FILES.contains(&path.rsplit('/').next().unwrap_or_default())
}

/// Whether a word is a known file extension.
pub(crate) fn is_extension(word: &str) -> bool {
    EXTENSIONS.split(' ').any(|extension| extension == word)
}
