//! Which operating system this is, and how programs are installed on it.

use std::path::Path;

/// How missing packages can be installed.
#[derive(Debug, Clone, PartialEq)]
pub enum System {
    /// Debian, Ubuntu, or a system that says it is like them.
    Apt(Distribution),
    /// Any other, by the name that it gives itself.
    Other(String),
}

/// A distribution that installs by `apt-get`.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Its name for people, such as `Debian GNU/Linux 12 (bookworm)`.
    pub pretty: String,
    /// The suite in LLVM's apt repository that matches it, such as `noble`.
    pub codename: Option<String>,
}

/// The value of `key` in the text of an `os-release` file, without its quotes.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.trim().split_once('=')?;
        let quotes: &[char] = &['"', '\''];
        (name == key).then(|| value.trim_matches(quotes)).filter(|value| !value.is_empty())
    })
}

impl System {
    /// Decides by the text of `/etc/os-release`.
    pub fn from_os_release(text: &str) -> Self {
        let id = value(text, "ID").unwrap_or("unknown");
        let like = value(text, "ID_LIKE").unwrap_or("");
        let pretty = value(text, "PRETTY_NAME").unwrap_or(id).to_string();
        let family = |name: &str| id == name || like.split_whitespace().any(|word| word == name);
        if !family("debian") && !family("ubuntu") {
            return System::Other(pretty);
        }
        // A derivative has a codename of its own; the one that counts is its parent's.
        let codename = ["UBUNTU_CODENAME", "DEBIAN_CODENAME", "VERSION_CODENAME"]
            .iter()
            .find_map(|key| value(text, key))
            .map(String::from);
        System::Apt(Distribution { pretty, codename })
    }

    /// The system that this program runs on.
    pub fn detect() -> Self {
        for file in ["/etc/os-release", "/usr/lib/os-release"] {
            if let Ok(text) = std::fs::read_to_string(Path::new(file)) {
                return Self::from_os_release(&text);
            }
        }
        System::Other(std::env::consts::OS.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apt(text: &str) -> Distribution {
        match System::from_os_release(text) {
            System::Apt(distribution) => distribution,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn debian_and_ubuntu_install_by_apt() {
        let debian = apt("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n\
                          VERSION_CODENAME=bookworm\n");
        assert_eq!(debian.pretty, "Debian GNU/Linux 12 (bookworm)");
        assert_eq!(debian.codename.as_deref(), Some("bookworm"));
        let ubuntu = apt("PRETTY_NAME=\"Ubuntu 24.04.2 LTS\"\nID=ubuntu\nID_LIKE=debian\n\
                          VERSION_CODENAME=noble\nUBUNTU_CODENAME=noble\n");
        assert_eq!(ubuntu.codename.as_deref(), Some("noble"));
    }

    #[test]
    fn a_derivative_takes_the_codename_of_its_parent() {
        let mint = apt("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\nPRETTY_NAME=\"Linux Mint 22\"\n\
                        VERSION_CODENAME=wilma\nUBUNTU_CODENAME=noble\n");
        assert_eq!(mint.codename.as_deref(), Some("noble"));
    }

    #[test]
    fn a_testing_release_may_have_no_codename() {
        assert_eq!(apt("ID=debian\nPRETTY_NAME='Debian'\nVERSION_CODENAME=\n").codename, None);
    }

    #[test]
    fn others_are_named_as_they_name_themselves() {
        let fedora = "ID=fedora\nPRETTY_NAME=\"Fedora Linux 42\"\n";
        assert_eq!(System::from_os_release(fedora), System::Other("Fedora Linux 42".into()));
        assert_eq!(System::from_os_release(""), System::Other("unknown".into()));
        // `ID_LIKE` is a list of words, not a text to search in.
        let odd = "ID=odd\nID_LIKE=notdebian\n";
        assert_eq!(System::from_os_release(odd), System::Other("odd".into()));
    }
}
