//! The names that `smalt` can be started under.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use smalt_protocol::Service;

/// The program that smalt is started as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// Itself.
    #[default]
    Smalt,
    /// `azurite`.
    Azurite,
    /// One of Azurite's programs for a single service, such as `azurite-blob`.
    AzuriteService(Service),
}

impl Program {
    /// The program that these arguments name, by the file name of the first or by the whole second,
    /// and the arguments without the second if it is such a name.
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

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Program::Smalt => "smalt",
            Program::Azurite => "azurite",
            Program::AzuriteService(Service::Blob) => "azurite-blob",
            Program::AzuriteService(Service::Queue) => "azurite-queue",
            Program::AzuriteService(Service::Table) => "azurite-table",
        }
    }

    /// Whether it serves this service.
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
    fn the_name_of_the_file_or_the_first_argument_names_the_program() {
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
    fn a_program_of_one_service_serves_that_one() {
        let queue = Program::AzuriteService(Service::Queue);
        assert!(queue.serves(Service::Queue) && !queue.serves(Service::Blob));
        assert!(Program::Azurite.serves(Service::Table) && Program::Smalt.serves(Service::Table));
    }
}
