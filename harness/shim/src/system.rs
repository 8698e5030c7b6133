//! The shim's own system calls, which do not run into its hooks.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The longest path that the kernel accepts.
const PATH_BYTES_MAX: usize = 4096;

/// Makes a system call with up to six numbers or addresses. Sets `errno` as the C library does.
///
/// # Safety
/// The arguments must be what this call takes: addresses must be valid for its duration.
pub(crate) unsafe fn call(number: c_long, arguments: [c_long; 6]) -> c_long {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller guarantees the arguments.
    unsafe { libc::syscall(number, a, b, c, d, e, f) }
}

/// Sets `errno` and returns -1.
pub(crate) fn refuse(errno: c_int) -> c_long {
    // SAFETY: the address is that of this thread's own `errno`.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// Returns the path of a descriptor, or the working directory for `AT_FDCWD`.
pub(crate) fn path_of(descriptor: c_int) -> Option<PathBuf> {
    let link = match descriptor {
        libc::AT_FDCWD => "/proc/self/cwd".to_owned(),
        descriptor => format!("/proc/self/fd/{descriptor}"),
    };
    let link = CString::new(link).ok()?;
    let mut buffer = [0_u8; PATH_BYTES_MAX];
    // SAFETY: both addresses are valid during the call, and the length is the buffer's.
    let length = unsafe {
        call(
            libc::SYS_readlinkat,
            [
                c_long::from(libc::AT_FDCWD),
                link.as_ptr() as c_long,
                buffer.as_mut_ptr() as c_long,
                PATH_BYTES_MAX as c_long,
                0,
                0,
            ],
        )
    };
    let found = buffer.get(..usize::try_from(length).ok()?)?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(found)))
}

/// Returns the absolute path of a name relative to a directory.
///
/// # Safety
/// `name` must be a C string.
pub(crate) unsafe fn path_at(directory: c_int, name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees that `name` is a C string.
    let name = unsafe { CStr::from_ptr(name) };
    let name = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    if name.is_absolute() {
        return Some(name.to_owned());
    }
    Some(path_of(directory)?.join(name))
}

/// Returns the length of an open file.
pub(crate) fn length_of(descriptor: c_int) -> u64 {
    // SAFETY: a `stat` of zero bytes is valid.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the address is valid during the call.
    let done = unsafe { libc::fstat(descriptor, &raw mut found) };
    if done == 0 {
        u64::try_from(found.st_size).unwrap_or_default()
    } else {
        0
    }
}

/// Returns the position of the next `write` to a descriptor.
pub(crate) fn position_of(descriptor: c_int) -> u64 {
    // SAFETY: all arguments are numbers.
    let (flags, at) = unsafe {
        (
            libc::fcntl(descriptor, libc::F_GETFL),
            libc::lseek(descriptor, 0, libc::SEEK_CUR),
        )
    };
    if flags & libc::O_APPEND != 0 {
        return length_of(descriptor);
    }
    u64::try_from(at).unwrap_or_default()
}

/// Opens the journal for appending.
pub(crate) fn open_journal(path: &Path) -> Option<c_int> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    // SAFETY: the path is valid during the call.
    let opened = unsafe {
        call(
            libc::SYS_openat,
            [
                c_long::from(libc::AT_FDCWD),
                path.as_ptr() as c_long,
                c_long::from(flags),
                0o644,
                0,
                0,
            ],
        )
    };
    c_int::try_from(opened).ok().filter(|opened| *opened >= 0)
}

/// Appends all bytes in one call, so that records of different threads do not mix.
pub(crate) fn append(descriptor: c_int, bytes: &[u8]) {
    // SAFETY: the bytes are valid during the call.
    unsafe {
        call(
            libc::SYS_write,
            [
                c_long::from(descriptor),
                bytes.as_ptr() as c_long,
                bytes.len() as c_long,
                0,
                0,
                0,
            ],
        )
    };
}

/// Returns the bytes passed to a call.
///
/// # Safety
/// They must be valid for as long as the slice is used.
pub(crate) unsafe fn bytes<'a>(at: *const c_void, length: usize) -> &'a [u8] {
    if at.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller guarantees that the bytes are valid.
    unsafe { std::slice::from_raw_parts(at.cast::<u8>(), length) }
}
