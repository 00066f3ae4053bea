//! many_clients
