//! The arguments of `serve` and `key`.

use std::path::PathBuf;

use clap::Args;

use super::options::TeamOptions;
use super::parsers::key_and_value;

/// `switchboard serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The team files
    #[arg(required = true, value_name = "TEAM")]
    pub(crate) teams: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) options: TeamOptions,

    /// A file of settings
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The address to listen on; any but a loopback address needs --keys
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<String>,

    /// The port; 0 is any free one
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,

    /// The file of keys
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<String>,

    /// The store of conversations: sqlite:PATH, postgres://..., redis://... or memory:
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// Set any setting; can be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
}

/// `switchboard studio`.
#[derive(Debug, Args)]
pub(crate) struct Studio {
    /// The team file
    #[arg(value_name = "TEAM")]
    pub(crate) team: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) options: TeamOptions,

    /// The port; any free one if it is not given
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,

    /// Do not open the browser
    #[arg(long)]
    pub(crate) no_open: bool,

    /// Do not let the page change the team file
    #[arg(long)]
    pub(crate) read_only: bool,

    /// The store of conversations: sqlite:PATH, postgres://..., redis://... or memory:
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// Lets you speak with the team: realtime, provider or offline
    #[arg(long, value_name = "MODELS")]
    pub(crate) speech: Option<String>,

    /// A folder with the page, to work on it
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(crate) page: Option<PathBuf>,
}

/// `switchboard key`.
#[derive(Debug, Args)]
pub(crate) struct Key {
    /// The file of keys; it is made if it is not there
    pub(crate) file: PathBuf,

    /// The tenant whose conversations the key gives access to
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: String,
}
