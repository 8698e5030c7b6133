//! The program names under which `smalt` can be started.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use smalt_protocol::Service;

/// The program name under which smalt was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// `smalt`.
    #[default]
    Smalt,
    /// `azurite`.
    Azurite,
    /// One of Azurite's programs for a single service, such as `azurite-blob`.
    AzuriteService(Service),
}

impl Program {
    /// Returns the program that the arguments name, either by the file name of the first argument
    /// or by the second argument, which is then removed from the returned arguments.
    pub(super) fn of(arguments: impl IntoIterator<Item = OsString>) -> (Self, Vec<OsString>) {
        let mut arguments: Vec<OsString> = arguments.into_iter().collect();
        if let Some(program) = arguments.get(1).and_then(|name| Self::named(name)) {
            arguments.remove(1);
            return (program, arguments);
        }
        let own = arguments.first().map(Path::new).and_then(Path::file_stem);
        (own.and_then(Self::named).unwrap_or_default(), arguments)
    }

    fn named(name: &OsStr) -> Option<Self> {
        let services = Service::ALL.map(Program::AzuriteService);
        let mut all = services.into_iter().chain([Program::Azurite]);
        all.find(|program| name == program.name())
    }

    /// Returns the name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Program::Smalt => "smalt",
            Program::Azurite => "azurite",
            Program::AzuriteService(Service::Blob) => "azurite-blob",
            Program::AzuriteService(Service::Queue) => "azurite-queue",
            Program::AzuriteService(Service::Table) => "azurite-table",
        }
    }

    /// Returns whether the program starts this service.
    pub fn serves(self, service: Service) -> bool {
        match self {
            Program::Smalt | Program::Azurite => true,
            Program::AzuriteService(only) => only == service,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_or_first_argument_selects_the_program() {
        let blob = Program::AzuriteService(Service::Blob);
        for (given, program, rest) in [
            ("smalt --silent", Program::Smalt, "smalt --silent"),
            ("smalt", Program::Smalt, "smalt"),
            ("smalt azurite -l /data", Program::Azurite, "smalt -l /data"),
            ("azurite -l azurite", Program::Azurite, "azurite -l azurite"),
            ("/usr/bin/azurite-blob -s", blob, "/usr/bin/azurite-blob -s"),
            ("./azurite-blob.exe", blob, "./azurite-blob.exe"),
            ("azurite azurite-blob", blob, "azurite"),
            ("smalt -l azurite", Program::Smalt, "smalt -l azurite"),
            ("azurites", Program::Smalt, "azurites"),
        ] {
            let (found, arguments) = Program::of(given.split(' ').map(OsString::from));
            assert_eq!(found, program, "{given}");
            assert_eq!(arguments.join(OsStr::new(" ")), rest, "{given}");
        }
        assert_eq!(Program::of([]).0, Program::Smalt);
    }

    #[test]
    fn single_service_program_starts_only_its_service() {
        let queue = Program::AzuriteService(Service::Queue);
        assert!(queue.serves(Service::Queue) && !queue.serves(Service::Blob));
        assert!(Program::Azurite.serves(Service::Table) && Program::Smalt.serves(Service::Table));
    }
}
