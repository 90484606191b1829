//! Quotes paths for shells.

use std::path::Path;

use crate::screen::wrap::one_line;

/// Quotes a path for a shell, on one line.
pub(crate) fn quoted(path: &Path) -> String {
    let path = path.strip_prefix(".").unwrap_or(path).display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-\\:".contains(c);
    if path.chars().all(is_plain) && !path.is_empty() {
        path
    } else {
        format!("'{}'", one_line(&path).replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_if_they_need_it() {
        assert_eq!(quoted(Path::new("./team.toml")), "team.toml");
        assert_eq!(quoted(Path::new("my team/a.toml")), "'my team/a.toml'");
        assert_eq!(quoted(Path::new("团队/team.toml")), "团队/team.toml");
        assert_eq!(quoted(Path::new("it's.toml")), r"'it'\''s.toml'");
    }
}
