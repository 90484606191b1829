//! A model that needs no network.
