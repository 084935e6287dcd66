package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// toolTimeout bounds one program that makes or copies a data folder.
const toolTimeout = time.Minute

// templateFormat counts the changes of what a template holds, so that a cache
// of an older lab is not used.
const templateFormat = "1"

// accountsSQL makes the database and the accounts. The first statement turns
// the grant tables on, without which CREATE USER is refused in a bootstrap.
var accountsSQL = strings.Join([]string{
	"FLUSH PRIVILEGES",
	"DELETE FROM mysql.global_priv WHERE User IN ('', 'root')", // would be preferred to those below
	"CREATE DATABASE " + database,
	fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY '%s'", appUser, appPassword),
	fmt.Sprintf("GRANT ALL ON %s.* TO '%s'@'%%'", database, appUser),
	fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY '%s'", rootUser, rootPassword),
	fmt.Sprintf("GRANT ALL ON *.* TO '%s'@'%%' WITH GRANT OPTION", rootUser),
	"FLUSH PRIVILEGES",
	"",
}, ";\n")

// plainTemplate returns the data folder that single servers start from.
func plainTemplate(t testing.TB) string {
	t.Helper()
	return cached(t, "plain", func(folder string) error { return buildPlain(t, folder) })
}

// cached returns the folder of that name in the cache, and has it built first
// where it is missing. A file lock makes the other test processes wait for the
// one that builds; the rename at the end makes a half-built folder impossible.
func cached(t testing.TB, name string, build func(folder string) error) string {
	t.Helper()
	cache := filepath.Join(home(t), "templates")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(cache, strings.Join([]string{"mariadb", version(t), templateFormat, name}, "-"))
	unlock := lockFile(t, done+".lock")
	defer unlock()
	if _, err := os.Stat(done); err == nil {
		return done
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	building := done + ".building"
	if err := errors.Join(os.RemoveAll(building), build(building), os.Rename(building, done)); err != nil {
		t.Fatalf("lab: make data folder: %v", err)
	}
	return done
}

// lockFile takes an exclusive lock and returns what releases it. The lock of a
// process that dies is released with it.
func lockFile(t testing.TB, path string) func() {
	t.Helper()
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { _ = lock.Close() }
}

var versionNumber = regexp.MustCompile(`Ver (\S+)`)

// version returns the version of the mariadbd that is installed, in a form that
// suits a file name.
func version(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t, "mariadbd"), "--no-defaults", "--version").Output()
	if err != nil {
		t.Fatalf("lab: mariadbd --version: %v", err)
	}
	found := versionNumber.FindSubmatch(out)
	if found == nil {
		t.Fatalf("lab: mariadbd --version says %q", out)
	}
	return strings.ReplaceAll(string(found[1]), "/", "_")
}

// buildPlain makes system tables, database and accounts. The tmpdir is not the
// machine's: a server that starts deletes other servers' temporary tables there.
func buildPlain(t testing.TB, folder string) error {
	acc := serverAccount(t)
	tmp := subfolder(t, workFolder(t, "install"), "tmp", acc)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := acc.own(folder); err != nil {
		return err
	}
	args := baseArgs(acc, folder, tmp)
	install := append(args, "--auth-root-authentication-method=normal", "--skip-test-db")
	if _, err := runTool(t, nil, program(t, "mariadb-install-db"), install...); err != nil {
		return err
	}
	_, err := runTool(t, strings.NewReader(accountsSQL), program(t, "mariadbd"), append(args, "--bootstrap")...)
	return err
}

// runTool runs a program to its end and returns what it said, in the error if
// there is one.
func runTool(t testing.TB, input io.Reader, path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), toolTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = input
	said, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w:\n%s", filepath.Base(path), err, said)
	}
	return said, nil
}
