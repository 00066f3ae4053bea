//! A certificate authority for a test, made with the program `openssl`.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// A certificate authority, in a temporary folder.
#[derive(Debug)]
pub struct TestAuthority {
    folder: TempDir,
}

impl TestAuthority {
    /// A new authority.
    #[must_use]
    pub fn new() -> Self {
        let authority =
            Self { folder: TempDir::with_prefix("toolhub-authority-").expect("a temporary folder") };
        let constraints = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"];
        authority.openssl(&[
            &[
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=authority of a test",
            ][..],
            &["-addext", constraints[0], "-addext", constraints[1], "-keyout", "ca.key", "-out", "ca.pem"],
        ]);
        authority
    }

    /// The file with its certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The files with a certificate for a server at 127.0.0.1, and with its key.
    #[must_use]
    pub fn issue(&self) -> (PathBuf, PathBuf) {
        let extensions =
            "subjectAltName=IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n";
        std::fs::write(self.folder.path().join("extensions"), extensions).expect("a file is written");
        self.openssl(&[
            &["req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server of a test"][..],
            &["-keyout", "server.key", "-out", "server.csr"],
        ]);
        self.openssl(&[
            &["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"][..],
            &["-days", "2", "-extfile", "extensions", "-out", "server.pem"],
        ]);
        (self.folder.path().join("server.pem"), self.folder.path().join("server.key"))
    }

    fn openssl(&self, arguments: &[&[&str]]) {
        let output = Command::new("openssl")
            .args(arguments.concat())
            .current_dir(self.folder.path())
            .output()
            .expect("`openssl` starts; PostgreSQL's packages bring it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Default for TestAuthority {
    fn default() -> Self {
        Self::new()
    }
}
