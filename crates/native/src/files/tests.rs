//! Tests of the file tools with real files.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use toolhub_core::lang::{Lang, Localize as _};

use super::*;

/// An allowed folder with some files, and a folder beside it that is not allowed.
struct Fixture {
    root: TempDir,
    folders: Folders,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let open = root.path().join("open");
        fs::create_dir_all(open.join("docs/深层")).unwrap();
        fs::create_dir_all(open.join(".hidden")).unwrap();
        fs::write(open.join("report.txt"), "one\ntwo\nthree\n").unwrap();
        fs::write(open.join("docs/说明.md"), "# 说明\n").unwrap();
        fs::write(open.join("docs/深层/a.md"), "a").unwrap();
        fs::write(open.join(".hidden/x.md"), "x").unwrap();
        fs::write(root.path().join("secret.txt"), "secret").unwrap();
        let folders = Folders::new(vec![open]);
        Self { root, folders }
    }

    fn open(&self) -> PathBuf {
        self.root.path().join("open")
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.open().join(name), bytes).unwrap();
    }

    fn render(&self, result: Result<ToolOutput, ToolError>) -> String {
        let text = match result {
            Ok(output) => output.texts().0.join("\n"),
            Err(error) => format!("error: {error}"),
        };
        text.replace(&self.root.path().display().to_string(), "ROOT")
    }

    /// The Chinese texts of an output or an error.
    fn chinese(&self, result: Result<ToolOutput, ToolError>) -> String {
        let text_of = |block: &RawJson| {
            let block = block.value();
            block.pointer("/_meta/toolhub~1zh").unwrap_or(&block["text"]).as_str().unwrap().to_owned()
        };
        let text = match result {
            Ok(output) => output.blocks().iter().map(text_of).collect::<Vec<_>>().join("\n"),
            Err(error) => format!("error: {}", error.localize(Lang::Zh)),
        };
        text.replace(&self.root.path().display().to_string(), "ROOT")
    }

    async fn read(&self, path: &str) -> String {
        self.render(read_file::run(&self.folders, path.to_owned(), None, None, None, None).await)
    }

    async fn lines(&self, path: &str, offset: u64, limit: u64) -> String {
        let (offset, limit) = (Some(offset), Some(limit));
        self.render(read_file::run(&self.folders, path.to_owned(), offset, limit, None, None).await)
    }

    async fn read_as(&self, path: &str, encoding: &str) -> String {
        self.render(
            read_file::run(&self.folders, path.to_owned(), None, None, None, Some(encoding.to_owned())).await,
        )
    }

    async fn list(&self, path: &str, pattern: &str, recursive: bool) -> String {
        let input = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        self.render(list_files::run(&self.folders, input(path), input(pattern), recursive).await)
    }
}

#[tokio::test]
async fn reads_files_by_any_path_inside_root() {
    let fixture = Fixture::new();
    let full_text = "one\ntwo\nthree\n";
    assert_eq!(fixture.read("report.txt").await, full_text);
    assert_eq!(fixture.read("./docs/../report.txt").await, full_text);
    assert_eq!(fixture.read(&fixture.open().join("report.txt").display().to_string()).await, full_text);
    assert_eq!(fixture.read("docs/说明.md").await, "# 说明\n");
}

#[tokio::test]
async fn reads_line_ranges() {
    let fixture = Fixture::new();
    let check = async |offset, limit, expect: &str| {
        assert_eq!(fixture.lines("report.txt", offset, limit).await, expect);
    };
    check(1, 2, "one\ntwo\n\n[lines 1 to 2; there is more: read on with offset_line = 3]").await;
    check(3, 2, "three\n\n[line 3, the last of the file]").await;
    check(2, 2, "two\nthree\n\n[lines 2 to 3, the last of the file]").await;
    check(1, 3, "one\ntwo\nthree\n").await;
    check(4, 1, "error: `report.txt` has 3 lines: offset_line = 4 is past its end").await;
    fixture.write("one", b"only");
    let result = fixture.lines("one", 2, 1).await;
    assert_eq!(result, "error: `one` has 1 line: offset_line = 2 is past its end");
}

#[tokio::test]
async fn returns_short_text_unchanged() {
    let fixture = Fixture::new();
    for text in ["", "a", "a\n", "a\r\nb\r\n", "\n\n", " \n\ta \n", "中文"] {
        fixture.write("exact", text.as_bytes());
        let output =
            read_file::run(&fixture.folders, "exact".to_owned(), None, None, None, None).await.unwrap();
        assert_eq!(output.texts().0, [text]);
    }
}

#[tokio::test]
async fn pages_long_files() {
    let fixture = Fixture::new();
    let line = "中文和 English\n";
    let count = 200_000;
    fixture.write("long.txt", line.repeat(count).as_bytes());
    let (mut all, mut offset, mut pages) = (String::new(), 1, 0);
    loop {
        let output = read_file::run(&fixture.folders, "long.txt".to_owned(), Some(offset), None, None, None)
            .await
            .unwrap();
        let (texts, _) = output.texts();
        assert!(texts[0].len() <= 1 << 20);
        all += &texts[0];
        pages += 1;
        let Some(next) = texts[1].split("offset_line = ").nth(1) else { break };
        offset = next.trim_end_matches(']').parse().unwrap();
    }
    assert!(all == line.repeat(count));
    assert!(pages > 3);
}

#[tokio::test]
async fn pages_long_lines() {
    let fixture = Fixture::new();
    let line = "é中".repeat(500_000);
    fixture.write("long-line.txt", format!("short\n{line}\nlast").as_bytes());
    let read = async |line, char| {
        let path = "long-line.txt".to_owned();
        let result = read_file::run(&fixture.folders, path, Some(line), None, Some(char), None).await;
        result.map(|output| output.texts().0).map_err(|error| error.to_string())
    };
    let (mut all, mut char) = (String::new(), 1);
    loop {
        let texts = read(2, char).await.unwrap();
        all += &texts[0];
        let Some((_, next)) = texts[1].split_once("read on with offset_line = 2, offset_char = ") else {
            break;
        };
        char = next.trim_end_matches(']').parse().unwrap();
    }
    assert!(all == format!("{line}\nlast"));
    let past = "line 2 has 1000000 characters: offset_char = 2000000 is past its end";
    assert_eq!(read(2, 2_000_000).await.unwrap_err(), past);
    assert_eq!(read(2, 1_000_001).await.unwrap()[0], "\nlast");
    assert_eq!(read(3, 2).await.unwrap()[0], "ast");
    let result = fixture.read("long-line.txt").await;
    assert!(result.ends_with("[line 1; there is more: read on with offset_line = 2]"));
}

#[tokio::test]
async fn detects_or_accepts_encodings() {
    let fixture = Fixture::new();
    let encode = |encoding: &'static encoding_rs::Encoding, text: &str| encoding.encode(text).0.into_owned();
    let utf16: Vec<u8> = "高度 height".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fixture.write("bom.txt", "\u{feff}with mark".as_bytes());
    fixture.write("utf16.txt", &[&[0xff, 0xfe], &utf16[..]].concat());
    fixture.write("utf16-bare.txt", &utf16);
    fixture.write("gbk.txt", &encode(encoding_rs::GBK, "你好，世界"));
    fixture.write("latin.txt", b"caf\xe9 au lait");
    fixture.write("image.png", b"\x89PNG\r\n\x1a\n\0\0");
    fixture.write("blob", b"ab\0cd");
    assert_eq!(fixture.read("bom.txt").await, "with mark");
    assert_eq!(fixture.read("utf16.txt").await, "高度 height");
    assert_eq!(fixture.read_as("utf16-bare.txt", "UTF-16LE").await, "高度 height");
    assert_eq!(
        fixture.read("gbk.txt").await,
        "你好，世界\n[read as gb18030, as it is not UTF-8; give `encoding` if this looks wrong]"
    );
    assert_eq!(fixture.read_as("gbk.txt", "gbk").await, "你好，世界");
    fixture.write("big5.txt", &encode(encoding_rs::BIG5, "繁體中文"));
    assert_eq!(
        fixture.read("big5.txt").await,
        "繁體中文\n[read as Big5, as it is not UTF-8; give `encoding` if this looks wrong]"
    );
    assert_eq!(fixture.read_as("latin.txt", "windows-1252").await, "café au lait");
    assert_eq!(
        fixture.read_as("latin.txt", "utf-8").await,
        "caf� au lait\n[characters that could not be read, shown as �: 1]"
    );
    let check = async |path: &str, expect: &str| assert_eq!(fixture.read(path).await, expect);
    check(
        "latin.txt",
        "error: `latin.txt` is not UTF-8, and what else it may be is not clear: give its `encoding`, such as `gb18030`, \
         `big5`, `shift_jis` or `windows-1252`",
    )
    .await;
    check(
        "image.png",
        "error: `image.png` is a binary file: a PNG image (10 B); only text can be read, in UTF-16 if `encoding` says so",
    )
    .await;
    check(
        "blob",
        "error: `blob` is a binary file (5 B); only text can be read, in UTF-16 if `encoding` says so",
    )
    .await;
    assert!(fixture.read_as("gbk.txt", "klingon").await.starts_with("error: there is no encoding `klingon`"));
}

#[tokio::test]
async fn rejects_paths_outside_root() {
    let fixture = Fixture::new();
    let refused =
        |path: &str| format!("error: `{path}` leads outside of the folders that may be read: `ROOT/open`");
    for path in ["../secret.txt", "docs/../../secret.txt", "/etc/passwd"] {
        assert_eq!(fixture.read(path).await, refused(path));
        assert_eq!(fixture.list(path, "", false).await, refused(path));
    }
    #[cfg(unix)]
    {
        use std::path::Path;
        let link = |target: &Path, name: &str| {
            std::os::unix::fs::symlink(target, fixture.open().join(name)).unwrap();
        };
        link(&fixture.root.path().join("secret.txt"), "out.txt");
        link(Path::new("../secret.txt"), "up.txt");
        link(fixture.root.path(), "parent");
        link(Path::new("report.txt"), "inside.txt");
        for path in ["out.txt", "up.txt", "parent/secret.txt"] {
            assert_eq!(fixture.read(path).await, refused(path));
        }
        assert_eq!(fixture.read("inside.txt").await, "one\ntwo\nthree\n");
        assert!(!fixture.list("", "", true).await.contains("secret"));
    }
}

#[tokio::test]
async fn errors_list_available_files() {
    let fixture = Fixture::new();
    let check = async |path: &str, expect: &str| assert_eq!(fixture.read(path).await, expect);
    check("reprot.txt", "error: there is no `reprot.txt` in `ROOT/open`; did you mean `report.txt`?").await;
    check("docs/说名.md", "error: there is no `docs/说名.md` in `ROOT/open`; did you mean `docs/说明.md`?")
        .await;
    check(
        "nowhere/at/all",
        "error: there is no `nowhere/at/all` in `ROOT/open`; use `list_files` to see what there is",
    )
    .await;
    check(
        "report.txt/x",
        "error: there is no `report.txt/x` in `ROOT/open`; use `list_files` to see what there is",
    )
    .await;
    check("docs", "error: `docs` is a folder: use `list_files`").await;
    assert_eq!(
        fixture.list("report.txt", "", false).await,
        "error: `report.txt` is no folder: use `read_file`"
    );
    let none = Fixture { root: tempfile::tempdir().unwrap(), folders: Folders::default() };
    let how = "error: no folder may be read: list some in toolhub.toml, as `[native] folders = [\"…\"]`";
    assert_eq!(none.read("a.txt").await, how);
    assert_eq!(none.list("", "", false).await, how);
}

#[tokio::test]
async fn lists_folders() {
    let fixture = Fixture::new();
    let check = async |path: &str, pattern: &str, recursive: bool, expect: &str| {
        assert_eq!(fixture.list(path, pattern, recursive).await, expect);
    };
    check("", "", false, "ROOT/open: 3 entries\n.hidden/\ndocs/\nreport.txt  14 B").await;
    check("docs", "", false, "ROOT/open/docs: 2 entries\n深层/\n说明.md  9 B").await;
    check("docs", "", true, "ROOT/open/docs: 3 entries\n深层/\n深层/a.md  1 B\n说明.md  9 B").await;
    check("", "*.md", true, "ROOT/open: 2 entries for `*.md`\ndocs/深层/a.md  1 B\ndocs/说明.md  9 B").await;
    check("", "docs/*.md", false, "ROOT/open: 1 entry for `docs/*.md`\ndocs/说明.md  9 B").await;
    check("", "*.zip", true, "ROOT/open: nothing for `*.zip`").await;
}

#[tokio::test]
async fn truncates_long_listings() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.open().join("many")).unwrap();
    for number in 0..1_005 {
        fixture.write(&format!("many/{number:04}"), b"");
    }
    let result = fixture.list("many", "", false).await;
    assert!(result.starts_with("ROOT/open/many: 1005 entries\n0000  0 B\n"), "{result}");
    assert!(
        result.ends_with(
            "\n0999  0 B\n[5 more are not shown: give a `pattern`, or the path of a folder inside]"
        )
    );
}

#[tokio::test]
async fn tries_several_roots_in_order() {
    let fixture = Fixture::new();
    let second = fixture.root.path().join("second");
    fs::create_dir(&second).unwrap();
    fs::write(second.join("only.txt"), "second").unwrap();
    fs::write(second.join("report.txt"), "hidden by the first").unwrap();
    let fixture = Fixture { folders: Folders::new(vec![fixture.open(), second]), root: fixture.root };
    assert_eq!(fixture.read("only.txt").await, "second");
    assert_eq!(fixture.read("report.txt").await, "one\ntwo\nthree\n");
    let result = fixture.list("", "*.txt", false).await;
    assert!(result.contains("ROOT/open: 1 entry") && result.contains("ROOT/second: 2 entries"), "{result}");
    let result = fixture.read("nothing.md").await;
    assert!(result.contains("`ROOT/open`, `ROOT/second`"), "{result}");
    // A missing folder does not affect the others.
    let gone = fixture.root.path().join("gone");
    let fixture = Fixture { folders: Folders::new(vec![gone, fixture.open()]), root: fixture.root };
    assert_eq!(fixture.read("report.txt").await, "one\ntwo\nthree\n");
}

#[test]
fn normalizes_roots() {
    let fixture = Fixture::new();
    let home = std::env::home_dir().unwrap();
    let input = ["~", "~/x", "/etc/~/x", "a/./b"].map(PathBuf::from);
    let winding = fixture.open().join("docs/../docs");
    let folders = Folders::new(input.into_iter().chain([winding]).collect());
    let here = std::env::current_dir().unwrap();
    let docs = fixture.open().join("docs").canonicalize().unwrap();
    let expect = [home.clone(), home.join("x"), PathBuf::from("/etc/~/x"), here.join("a/b"), docs];
    assert!(folders.roots().eq(expect.iter()), "{folders:?}");
}

#[tokio::test]
async fn expands_tilde_to_home() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.open().join("~")).unwrap();
    fs::write(fixture.open().join("~/a.txt"), "in a folder of that name").unwrap();
    assert!(fixture.read("~/a.txt").await.contains("leads outside"));
    assert_eq!(fixture.read("./~/a.txt").await, "in a folder of that name");
    let home = Fixture { folders: Folders::new(vec![PathBuf::from("~")]), root: fixture.root };
    let result = home.read("~/no-such-file.txt").await;
    assert!(result.contains("there is no `~/no-such-file.txt`"), "{result}");
}

#[tokio::test]
async fn normalizes_listed_path() {
    let fixture = Fixture::new();
    let result = fixture.list("docs/../docs/./深层/..", "*.md", false).await;
    assert_eq!(result, "ROOT/open/docs: 1 entry for `*.md`\n说明.md  9 B");
}

#[test]
fn guesses_plausible_encoding() {
    use encoding_rs::{BIG5, EUC_KR, GB18030, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};
    let check = |text: &str, written: &'static encoding_rs::Encoding, expect| {
        let (bytes, _, _) = written.encode(text);
        assert_eq!(guess::guess(&bytes), expect, "{text}");
    };
    for text in [
        "你好，世界",
        "测试",
        "姓名,年龄\n张三,30\n",
        "今天天气很好，我们去公园散步。",
        "一个有趣的 README 文件",
    ] {
        check(text, GB18030, Some(GB18030));
    }
    for text in ["繁體中文", "測試檔案", "臺北市", "姓名,年齡\n王小明,30\n", "今天天氣很好，我們去公園散步。"]
    {
        check(text, BIG5, Some(BIG5));
    }
    for text in
        ["日本語", "こんにちは、世界", "カタカナ", "今日は天気がいいので、公園を散歩します。", "東京都"]
    {
        check(text, SHIFT_JIS, Some(SHIFT_JIS));
    }
    for text in ["안녕하세요", "한국어 문서입니다.", "오늘은 날씨가 좋아서 공원을 산책합니다."]
    {
        check(text, EUC_KR, Some(EUC_KR));
    }
    for text in ["für Zürich, Straße", "Grüße aus Köln", "café déjà vu, où êtes-vous ?"] {
        check(text, WINDOWS_1252, None);
    }
    check("Привет, мир! Как дела?", WINDOWS_1251, None);
    // The sample is too short.
    check("北京", GB18030, None);
}

#[tokio::test]
async fn errors_of_reading_are_localized() {
    let fixture = Fixture::new();
    fixture.write("image.png", b"\x89PNG\r\n\x1a\n\0\0");
    fixture.write("blob", b"ab\0cd");
    fixture.write("latin.txt", b"caf\xe9 au lait");
    let read = async |path: &str, lines: [Option<u64>; 3], encoding: Option<&str>| {
        let ([first, limit, char], encoding) = (lines, encoding.map(str::to_owned));
        fixture.chinese(read_file::run(&fixture.folders, path.to_owned(), first, limit, char, encoding).await)
    };
    let check = async |path: &str, expect: &str| assert_eq!(read(path, [None; 3], None).await, expect);
    check(
        "image.png",
        "error: `image.png` 是二进制文件：PNG 图片（10 B）；只能读取文本，若是 UTF-16 请用 `encoding` 注明",
    )
    .await;
    check("blob", "error: `blob` 是二进制文件（5 B）；只能读取文本，若是 UTF-16 请用 `encoding` 注明").await;
    check(
        "latin.txt",
        "error: `latin.txt` 不是 UTF-8，也无法确定是什么编码：请给出 `encoding`，例如 `gb18030`、`big5`、`shift_jis` 或 `windows-1252`",
    )
    .await;
    check("../secret.txt", "error: `../secret.txt` 在可读取的目录之外：`ROOT/open`").await;
    check("reprot.txt", "error: `ROOT/open` 中没有 `reprot.txt`；是否指 `report.txt`？").await;
    check("nowhere", "error: `ROOT/open` 中没有 `nowhere`；可用 `list_files` 查看有哪些文件").await;
    check("docs", "error: `docs` 是目录：请使用 `list_files`").await;
    assert_eq!(
        read("report.txt", [None; 3], Some("klingon")).await,
        "error: 没有编码 `klingon`：请使用 `utf-8`、`gbk`、`gb18030`、`big5`、`utf-16le` 等"
    );
    assert_eq!(
        read("report.txt", [Some(4), None, None], None).await,
        "error: `report.txt` 只有 3 行：offset_line = 4 已超出末尾"
    );
    assert_eq!(
        read("report.txt", [Some(2), None, Some(9)], None).await,
        "error: 第 2 行只有 3 个字符：offset_char = 9 已超出末尾"
    );
    let none = Fixture { root: tempfile::tempdir().unwrap(), folders: Folders::default() };
    assert_eq!(
        none.chinese(read_file::run(&none.folders, "a".to_owned(), None, None, None, None).await),
        "error: 没有可读取的目录：请在 toolhub.toml 中写明，如 `[native] folders = [\"…\"]`"
    );
    let gone = Fixture { folders: Folders::new(vec![none.root.path().join("gone")]), root: none.root };
    let result = gone.chinese(read_file::run(&gone.folders, "a".to_owned(), None, None, None, None).await);
    assert!(result.starts_with("error: 无法打开目录 `ROOT/gone`："), "{result}");
}

#[tokio::test]
async fn notes_of_reading_are_localized() {
    let fixture = Fixture::new();
    let (gbk, _, _) = encoding_rs::GBK.encode("你好，世界");
    fixture.write("gbk.txt", &gbk);
    fixture.write("latin.txt", b"caf\xe9");
    fixture.write("long.txt", "é".repeat(1 << 20).as_bytes());
    let read = async |path: &str, lines: [Option<u64>; 2], encoding: Option<&str>| {
        let ([first, limit], encoding) = (lines, encoding.map(str::to_owned));
        fixture.chinese(read_file::run(&fixture.folders, path.to_owned(), first, limit, None, encoding).await)
    };
    let check = async |first, limit, expect: &str| {
        assert_eq!(read("report.txt", [Some(first), Some(limit)], None).await, expect);
    };
    check(1, 1, "one\n\n[第 1 行；后面还有：用 offset_line = 2 继续读取]").await;
    check(1, 2, "one\ntwo\n\n[第 1 至 2 行；后面还有：用 offset_line = 3 继续读取]").await;
    check(3, 2, "three\n\n[第 3 行，文件的最后一行]").await;
    check(2, 2, "two\nthree\n\n[第 2 至 3 行，到文件末尾]").await;
    assert_eq!(
        read("gbk.txt", [None; 2], None).await,
        "你好，世界\n[按 gb18030 读取（不是 UTF-8）；若显示有误，请给出 `encoding`]"
    );
    assert_eq!(read("latin.txt", [None; 2], Some("utf-8")).await, "caf�\n[无法读取、显示为 � 的字符：1 个]");
    let result = read("long.txt", [None; 2], None).await;
    assert!(result.ends_with("\n[第 1 行超过 1 MiB：用 offset_line = 1、offset_char = 524289 继续读取]"));
}

#[tokio::test]
async fn messages_of_listing_are_localized() {
    let fixture = Fixture::new();
    let list = async |path: &str, recursive| {
        fixture.chinese(list_files::run(&fixture.folders, Some(path.to_owned()), None, recursive).await)
    };
    assert_eq!(list("report.txt", false).await, "error: `report.txt` 不是目录：请使用 `read_file`");
    fs::create_dir(fixture.open().join("many")).unwrap();
    for number in 0..1_005 {
        fixture.write(&format!("many/{number:04}"), b"");
    }
    let result = list("many", false).await;
    assert!(result.ends_with("\n[另有 5 项未显示：请给出 `pattern`，或其中某个目录的路径]"), "{result}");
    fs::create_dir_all(fixture.open().join(["deep"; 40].join("/"))).unwrap();
    let result = list("deep", true).await;
    assert!(result.ends_with("/` 层次太深]"), "{result}");
}

#[test]
fn every_file_type_has_a_chinese_name() {
    assert!(decode::FILE_TYPES.iter().all(|file_type| file_type.chinese != file_type.english));
}

#[test]
fn formats_human_readable_sizes() {
    let check = |bytes: u64, expect: &str| assert_eq!(list::size(bytes), expect);
    check(0, "0 B");
    check(1023, "1023 B");
    check(1024, "1.0 KB");
    check(1_500_000, "1.4 MB");
    check(u64::MAX, "16777216.0 TB");
}

#[tokio::test]
async fn excluded_folders_are_not_read_by_any_path() {
    let fixture = Fixture::new();
    let private = fixture.open().join("data");
    fs::create_dir_all(private.join("inner")).unwrap();
    fs::write(private.join("key"), "secret").unwrap();
    fs::write(private.join("inner/key"), "secret").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("data", fixture.open().join("link")).unwrap();
    let read = async |folders: &Folders, path: &str| {
        fixture.render(read_file::run(folders, path.to_owned(), None, None, None, None).await)
    };
    let absolute = private.join("key").display().to_string();
    let paths = ["data/key", "./docs/../data/key", "data/inner/key", "link/key", "data/./key", &absolute];
    let excluded = fixture.folders.clone().without(std::slice::from_ref(&private));
    for path in paths {
        assert!(
            read(&fixture.folders, path).await.contains("secret"),
            "{path} is readable without the exclusion"
        );
        let refused = read(&excluded, path).await;
        assert!(!refused.contains("secret") && refused.contains("outside"), "{path}: {refused}");
    }
    let listed = fixture.render(list_files::run(&excluded, Some("data".to_owned()), None, false).await);
    assert!(listed.contains("outside"), "{listed}");
    assert!(read(&excluded, "report.txt").await.contains("two"));
}
