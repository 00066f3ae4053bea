//! The page shown after the browser redirect, in both languages. Contains nothing from the request.

/// The login continues without the browser.
pub(crate) fn done() -> String {
    page("200 OK", "✓", ["Thank you. You can close this page.", "谢谢，可以关闭本页，登录即将完成。"])
}

/// The login failed; the program that started it shows the reason.
pub(crate) fn failed() -> String {
    let texts =
        ["The login failed. toolhub says why in its window.", "登录失败，原因请看 toolhub 窗口中的说明。"];
    page("400 Bad Request", "✗", texts)
}

/// The request belongs to no login.
pub(crate) fn not_found() -> String {
    let texts = ["This page belongs to no login that is under way.", "没有与此页面对应的登录。"];
    page("404 Not Found", "?", texts)
}

fn page(status: &str, sign: &str, [english, chinese]: [&str; 2]) -> String {
    let body = format!(
        "<!doctype html><html><head><meta charset=\"utf-8\"><title>toolhub</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>body{{font:1.1rem/1.6 system-ui,sans-serif;\
         display:grid;place-content:center;min-height:90vh;text-align:center;color-scheme:light dark}}\
         b{{font-size:3rem}}</style></head><body><b>{sign}</b><p>{english}</p>\
         <p lang=\"zh\">{chinese}</p></body></html>\n"
    );
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\r\n{body}"
    )
}
