//! The lines that Azurite prints when its services start and stop; integrations wait for them.
//!
//! Source: Azurite 3.37, run; `ci/integrations.sh` compares both programs.

use std::net::SocketAddr;

use smalt_protocol::Service;

use crate::cli::{Flags, Program};

/// Formats Azurite's lines as one of its programs words them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Voice {
    program: Program,
    scheme: &'static str,
}

impl Voice {
    /// Returns the voice that the flags ask for; `None` without Azurite's output.
    pub(super) fn of(flags: &Flags) -> Option<Self> {
        let voice = Voice {
            program: flags.program,
            scheme: super::endpoints::scheme(flags),
        };
        flags.speaks_as_azurite().then_some(voice)
    }

    /// Returns the line before a service is bound, with the requested host and port.
    pub(super) fn starting(self, service: Service, (host, port): (&str, u16)) -> String {
        let name = name(service);
        match self.program {
            Program::AzuriteService(_) => {
                format!("Azurite {name} service is starting on {host}:{port}\n")
            }
            _ => {
                let scheme = self.scheme;
                format!("Azurite {name} service is starting at {scheme}://{host}:{port}\n")
            }
        }
    }

    /// Returns the line after a service was bound.
    pub(super) fn listening(self, service: Service, host: &str, bound: SocketAddr) -> String {
        let (name, scheme) = (name(service), self.scheme);
        match self.program {
            Program::AzuriteService(Service::Table) => {
                let port = bound.port();
                format!("Azurite {name} service successfully started on {host}:{port}\n")
            }
            Program::AzuriteService(_) => {
                format!("Azurite {name} service successfully listens on {scheme}://{bound}\n")
            }
            _ => {
                format!("Azurite {name} service is successfully listening at {scheme}://{bound}\n")
            }
        }
    }

    /// Returns the line for a service that starts to stop.
    pub(super) fn closing(self, service: Service) -> String {
        format!("Azurite {} service is closing...\n", name(service))
    }

    /// Returns the line for a service that has stopped.
    pub(super) fn closed(self, service: Service) -> String {
        format!("Azurite {} service successfully closed\n", name(service))
    }
}

fn name(service: Service) -> &'static str {
    match service {
        Service::Blob => "Blob",
        Service::Queue => "Queue",
        Service::Table => "Table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all lines of a program about a service that was requested on port 0.
    fn said(program: Program, scheme: &'static str, service: Service) -> String {
        let voice = Voice { program, scheme };
        let bound = "127.0.0.1:4711".parse().unwrap();
        [
            voice.starting(service, ("localhost", 0)),
            voice.listening(service, "localhost", bound),
            voice.closing(service),
            voice.closed(service),
        ]
        .concat()
    }

    #[test]
    fn each_program_prints_its_own_lines() {
        let alone = Program::AzuriteService;
        assert_eq!(
            said(Program::Azurite, "https", Service::Blob),
            "Azurite Blob service is starting at https://localhost:0\n\
             Azurite Blob service is successfully listening at https://127.0.0.1:4711\n\
             Azurite Blob service is closing...\n\
             Azurite Blob service successfully closed\n"
        );
        assert_eq!(
            said(alone(Service::Queue), "http", Service::Queue),
            "Azurite Queue service is starting on localhost:0\n\
             Azurite Queue service successfully listens on http://127.0.0.1:4711\n\
             Azurite Queue service is closing...\n\
             Azurite Queue service successfully closed\n"
        );
        assert_eq!(
            said(alone(Service::Table), "http", Service::Table),
            "Azurite Table service is starting on localhost:0\n\
             Azurite Table service successfully started on localhost:4711\n\
             Azurite Table service is closing...\n\
             Azurite Table service successfully closed\n"
        );
    }
}
