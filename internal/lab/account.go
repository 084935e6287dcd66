package lab

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"testing"
)

// account is the operating system's user that a MariaDB server runs as. The
// zero value is the user who runs the test.
type account struct {
	name     string
	uid, gid int
}

// serverAccount returns the account mysql when root runs the test, because
// mariadbd refuses to run as root and Galera's state transfer fails as root.
func serverAccount(t testing.TB) account {
	t.Helper()
	if os.Getuid() != 0 {
		return account{}
	}
	u, err := user.Lookup("mysql")
	if err != nil {
		t.Fatalf("lab: %v: %s", err, install)
	}
	acc := account{name: u.Username}
	if acc.uid, err = strconv.Atoi(u.Uid); err == nil {
		acc.gid, err = strconv.Atoi(u.Gid)
	}
	if err != nil {
		t.Fatalf("lab: account %s: %v", acc.name, err)
	}
	return acc
}

// args returns the option that makes mariadbd and its tools run as a.
func (a account) args() []string {
	if a.name == "" {
		return nil
	}
	return []string{"--user=" + a.name}
}

// own gives a file or folder to a.
func (a account) own(path string) error {
	if a.name == "" {
		return nil
	}
	if err := os.Lchown(path, a.uid, a.gid); err != nil {
		return fmt.Errorf("give to %s: %w", a.name, err)
	}
	return nil
}
