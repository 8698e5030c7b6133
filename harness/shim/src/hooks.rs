//! The hooked functions of the C library. Each makes the same system call as the original. Calls on
//! files in the watched directory are journaled, or fail as planned.
//!
//! Names and signatures are the C library's. `open` reads its mode as a third argument whether or
//! not the caller passes it; Linux's calling conventions allow this, since it only reads one more
//! register.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::path::PathBuf;

use libc::{iovec, off_t, size_t, ssize_t};

use crate::journal::{Kind, record, watched};
use crate::plan::{Verdict, judge};
use crate::system::{bytes, call, length_of, path_at, path_of, position_of, refuse};

fn if_done(done: &c_long) -> Option<(u64, Vec<u8>)> {
    (*done == 0).then(|| (0, Vec::new()))
}

/// Opens a file, and journals one that is new or was truncated.
///
/// # Safety
/// The same as for `openat`.
unsafe fn open_at(directory: c_int, name: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    let flags = flags | libc::O_LARGEFILE;
    let arguments = [
        c_long::from(directory),
        name as c_long,
        c_long::from(flags),
        c_long::from(mode),
        0,
        0,
    ];
    // SAFETY: the arguments are the caller's, as `openat` takes them.
    let go = || unsafe { call(libc::SYS_openat, arguments) };
    // SAFETY: `name` is a C string, as `openat` takes it.
    let path = watched(unsafe { path_at(directory, name) });
    let done = match path {
        Some(path) if flags & libc::O_CREAT != 0 => match judge("open", &path) {
            Verdict::Fail(errno) => refuse(errno),
            _ => {
                let is_new = !exists(&path_absolute(directory, name));
                let is_emptied = flags & libc::O_TRUNC != 0;
                let kind = if is_new { Kind::Create } else { Kind::Truncate };
                record(kind, &path, go, |done| {
                    (*done >= 0 && (is_new || is_emptied)).then(|| (0, Vec::new()))
                })
            }
        },
        _ => go(),
    };
    c_int::try_from(done).unwrap_or(-1)
}

fn path_absolute(directory: c_int, name: *const c_char) -> Option<PathBuf> {
    // SAFETY: `name` is a C string, as the caller requires of its own caller.
    unsafe { path_at(directory, name) }
}

fn exists(path: &Option<PathBuf>) -> bool {
    path.as_ref().is_some_and(|path| path.exists())
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(name: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { open_at(libc::AT_FDCWD, name, flags, mode) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(name: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { open_at(libc::AT_FDCWD, name, flags, mode) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(
    directory: c_int,
    name: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { open_at(directory, name, flags, mode) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(
    directory: c_int,
    name: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { open_at(directory, name, flags, mode) }
}

/// Writes at `offset`, or at the current position of the descriptor.
///
/// # Safety
/// The same as for `pwrite` and `write`.
unsafe fn write_at(
    file: c_int,
    data: *const c_void,
    length: size_t,
    offset: Option<off_t>,
) -> ssize_t {
    let go = |length: size_t| {
        let (number, at) = match offset {
            Some(offset) => (libc::SYS_pwrite64, offset),
            None => (libc::SYS_write, 0),
        };
        let arguments = [
            c_long::from(file),
            data as c_long,
            length as c_long,
            at,
            0,
            0,
        ];
        // SAFETY: the arguments are the caller's, and the length is at most theirs.
        unsafe { call(number, arguments) }
    };
    let Some(path) = watched(path_of(file)) else {
        return go(length) as ssize_t;
    };
    let length = match judge("write", &path) {
        Verdict::Fail(errno) => return refuse(errno) as ssize_t,
        Verdict::Short if length > 1 => length / 2,
        _ => length,
    };
    let at = offset.map_or_else(
        || position_of(file),
        |offset| u64::try_from(offset).unwrap_or_default(),
    );
    let written = record(
        Kind::Write,
        &path,
        || go(length),
        |done| {
            let done = usize::try_from(*done).ok()?;
            // SAFETY: the kernel has just read this many bytes from there.
            Some((at, unsafe { bytes(data, done) }.to_vec()))
        },
    );
    written as ssize_t
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: c_int, data: *const c_void, length: size_t) -> ssize_t {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { write_at(file, data, length, None) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(
    file: c_int,
    data: *const c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { write_at(file, data, length, Some(offset)) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(
    file: c_int,
    data: *const c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { write_at(file, data, length, Some(offset)) }
}

/// Writes the first piece that is not empty. This is a short write, which every caller must
/// continue.
///
/// # Safety
/// The same as for `writev` and `pwritev`.
unsafe fn write_first(
    file: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: Option<off_t>,
) -> ssize_t {
    let count = usize::try_from(count).unwrap_or_default();
    for at in 0..count {
        // SAFETY: there are `count` pieces.
        let piece = unsafe { &*pieces.add(at) };
        if piece.iov_len > 0 {
            // SAFETY: a piece holds an address and the number of valid bytes there.
            return unsafe { write_at(file, piece.iov_base, piece.iov_len, offset) };
        }
    }
    0
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(file: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { write_first(file, pieces, count, None) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(
    file: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { write_first(file, pieces, count, Some(offset)) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64(
    file: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { write_first(file, pieces, count, Some(offset)) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread64(
    file: c_int,
    data: *mut c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    let length = match watched(path_of(file)).map(|path| judge("read", &path)) {
        Some(Verdict::Fail(errno)) => return refuse(errno) as ssize_t,
        Some(Verdict::Short) if length > 1 => length / 2,
        _ => length,
    };
    let arguments = [
        c_long::from(file),
        data as c_long,
        length as c_long,
        offset,
        0,
        0,
    ];
    // SAFETY: the arguments are the caller's, and the length is at most theirs.
    (unsafe { call(libc::SYS_pread64, arguments) }) as ssize_t
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread(
    file: c_int,
    data: *mut c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { pread64(file, data, length, offset) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate64(file: c_int, length: off_t) -> c_int {
    // SAFETY: all arguments are numbers.
    let go = || unsafe { call(libc::SYS_ftruncate, [file.into(), length, 0, 0, 0, 0]) };
    let done = match watched(path_of(file)) {
        Some(path) => record(Kind::Truncate, &path, go, |done| {
            (*done == 0).then(|| (length_of(file), Vec::new()))
        }),
        None => go(),
    };
    c_int::try_from(done).unwrap_or(-1)
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate(file: c_int, length: off_t) -> c_int {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { ftruncate64(file, length) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let here = c_long::from(libc::AT_FDCWD);
    let arguments = [here, from as c_long, here, to as c_long, 0, 0];
    // SAFETY: the arguments are the caller's.
    let go = || unsafe { call(libc::SYS_renameat2, arguments) };
    let (old, new) = (
        watched(path_absolute(libc::AT_FDCWD, from)),
        watched(path_absolute(libc::AT_FDCWD, to)),
    );
    let done = match (old, new) {
        (Some(old), Some(new)) => match judge("rename", &new) {
            Verdict::Fail(errno) => refuse(errno),
            _ => record(Kind::Rename, &old, go, |done| {
                let new = std::os::unix::ffi::OsStrExt::as_bytes(new.as_os_str()).to_vec();
                (*done == 0).then_some((0, new))
            }),
        },
        _ => go(),
    };
    c_int::try_from(done).unwrap_or(-1)
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(directory: c_int, name: *const c_char, flags: c_int) -> c_int {
    let arguments = [directory.into(), name as c_long, flags.into(), 0, 0, 0];
    // SAFETY: the arguments are the caller's.
    let go = || unsafe { call(libc::SYS_unlinkat, arguments) };
    let kind = if flags & libc::AT_REMOVEDIR != 0 {
        Kind::RemoveDir
    } else {
        Kind::Unlink
    };
    let done = match watched(path_absolute(directory, name)) {
        Some(path) => record(kind, &path, go, if_done),
        None => go(),
    };
    c_int::try_from(done).unwrap_or(-1)
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(name: *const c_char) -> c_int {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { unlinkat(libc::AT_FDCWD, name, 0) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmdir(name: *const c_char) -> c_int {
    // SAFETY: the caller meets the requirements of the C library function.
    unsafe { unlinkat(libc::AT_FDCWD, name, libc::AT_REMOVEDIR) }
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdir(name: *const c_char, mode: c_uint) -> c_int {
    let here = c_long::from(libc::AT_FDCWD);
    let arguments = [here, name as c_long, mode.into(), 0, 0, 0];
    // SAFETY: the arguments are the caller's.
    let go = || unsafe { call(libc::SYS_mkdirat, arguments) };
    let done = match watched(path_absolute(libc::AT_FDCWD, name)) {
        Some(path) => record(Kind::MakeDir, &path, go, if_done),
        None => go(),
    };
    c_int::try_from(done).unwrap_or(-1)
}

fn sync(file: c_int, number: c_long) -> c_int {
    // SAFETY: the argument is a number.
    let go = || unsafe { call(number, [file.into(), 0, 0, 0, 0, 0]) };
    let done = match watched(path_of(file)) {
        Some(path) => match judge("sync", &path) {
            Verdict::Fail(errno) => refuse(errno),
            _ => record(Kind::Sync, &path, go, if_done),
        },
        None => go(),
    };
    c_int::try_from(done).unwrap_or(-1)
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(file: c_int) -> c_int {
    sync(file, libc::SYS_fsync)
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    sync(file, libc::SYS_fdatasync)
}

/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sync_file_range(
    file: c_int,
    offset: off_t,
    length: off_t,
    flags: c_uint,
) -> c_int {
    let arguments = [file.into(), offset, length, flags.into(), 0, 0];
    // SAFETY: all arguments are numbers.
    let go = || unsafe { call(libc::SYS_sync_file_range, arguments) };
    let done = match watched(path_of(file)) {
        Some(path) => record(Kind::SyncRange, &path, go, |done| {
            let offset = u64::try_from(offset).unwrap_or_default();
            (*done == 0).then(|| (offset, length.to_le_bytes().to_vec()))
        }),
        None => go(),
    };
    c_int::try_from(done).unwrap_or(-1)
}

/// Fails: copies within the kernel are not supported, so that callers fall back to reading and
/// writing.
///
/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_file_range(
    _from: c_int,
    _from_at: *mut off_t,
    _to: c_int,
    _to_at: *mut off_t,
    _length: size_t,
    _flags: c_uint,
) -> ssize_t {
    refuse(libc::ENOSYS) as ssize_t
}

/// Fails like [`copy_file_range`].
///
/// # Safety
/// The same as for the C library function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(
    _to: c_int,
    _from: c_int,
    _from_at: *mut off_t,
    _length: size_t,
) -> ssize_t {
    refuse(libc::ENOSYS) as ssize_t
}
