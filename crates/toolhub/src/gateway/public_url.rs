//! The public URL of the gateway (`[auth] resource`), and the URLs of pages below it that callers can open.

use url::Url;

/// The URL at which browsers of callers reach the gateway.
#[derive(Debug, Clone)]
pub(super) struct PublicUrl(Url);

impl PublicUrl {
    /// `None` if no URL is configured, or one that has no path.
    pub(super) fn parse(resource: Option<&str>) -> Option<Self> {
        let url = Url::parse(resource?).ok()?;
        (!url.cannot_be_a_base()).then_some(Self(url))
    }

    /// The path of a page such as `/login`, as a browser sees it: below the prefix of a proxy.
    pub(super) fn path(&self, page: &str) -> String {
        format!("{}{page}", self.0.path().trim_end_matches('/'))
    }

    pub(super) fn page(&self, page: &str) -> String {
        format!("{}{}", self.origin(), self.path(page))
    }

    /// As browsers send it in `Origin`.
    pub(super) fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    pub(super) fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_below_the_prefix_of_the_public_url() {
        for (resource, page) in [
            ("https://hub.example", "https://hub.example/login/1"),
            ("https://hub.example/", "https://hub.example/login/1"),
            ("https://hub.example:8443/tools/", "https://hub.example:8443/tools/login/1"),
        ] {
            assert_eq!(PublicUrl::parse(Some(resource)).unwrap().page("/login/1"), page);
        }
        assert!(PublicUrl::parse(Some("mailto:ann@hub.example")).is_none());
        assert!(PublicUrl::parse(None).is_none());
    }
}
