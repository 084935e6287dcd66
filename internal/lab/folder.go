package lab

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// maxHome bounds the length of the home folder's path: a socket's path below
// it must stay under the 107 bytes that the kernel takes.
const maxHome = 60

// home returns the folder that holds what lab keeps on this machine for the
// user who runs the test.
func home(t testing.TB) string {
	t.Helper()
	uid := os.Getuid()
	folder := filepath.Join(baseFolder(os.TempDir()), "shardhop-lab-"+strconv.Itoa(uid))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(folder); err != nil || !info.IsDir() || owner(info) != uid {
		t.Fatalf("lab: %s belongs to somebody else (%v): remove it, or set TMPDIR", folder, err)
	}
	return folder
}

// baseFolder returns tmp, or /tmp when other users cannot enter tmp or its
// path is too long for a socket.
func baseFolder(tmp string) string {
	if len(tmp) > maxHome || !enterable(tmp) {
		return "/tmp"
	}
	return tmp
}

// enterable reports whether every user may enter folder.
func enterable(folder string) bool {
	for {
		info, err := os.Stat(folder)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return true
		}
		folder = parent
	}
}

func owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// workFolder makes a folder for one server that every user may enter. It is
// removed after the cleanups of all that is made later.
func workFolder(t testing.TB, name string) string {
	t.Helper()
	//nolint:usetesting // other users cannot enter t.TempDir, and its path is too long for a socket
	folder, err := os.MkdirTemp(home(t), fmt.Sprintf("%s-%d-", name, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// subfolder makes a folder in parent that belongs to acc.
func subfolder(t testing.TB, parent, name string, acc account) string {
	t.Helper()
	folder := filepath.Join(parent, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := acc.own(folder); err != nil {
		t.Fatal(err)
	}
	return folder
}
