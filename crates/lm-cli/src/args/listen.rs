//! Address to listen on.

use std::net::{Ipv4Addr, SocketAddr};

/// Parser of an address for clap: an address, or a port of this machine.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    let addr = text.replace("localhost", "127.0.0.1").parse();
    port.or(addr).map_err(|_| "expected a port, or an address such as 127.0.0.1:8000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_port_is_an_address() {
        assert_eq!(address("8000"), Ok("127.0.0.1:8000".parse().expect("an address")));
        assert_eq!(address("localhost:8000"), address("8000"));
        assert_eq!(address("[::1]:80"), Ok("[::1]:80".parse().expect("an address")));
        assert!(address("host:8000").is_err() && address("70000").is_err());
    }
}
