package lab_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
)

// failing is a test that records its failure and goes on to its cleanups.
type failing struct {
	testing.TB
	said strings.Builder
}

func (f *failing) Fatalf(format string, args ...any) {
	fmt.Fprintf(&f.said, format, args...)
	panic(f)
}

func (f *failing) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

// failure runs fn and returns what it ended the test with.
func failure(t *testing.T, fn func(t testing.TB)) (said string) {
	t.Helper()
	f := &failing{TB: t}
	defer func() {
		if r := recover(); r != nil && r != any(f) {
			panic(r)
		}
		said = f.said.String()
	}()
	fn(f)
	return ""
}

func TestFailuresSayWhatIsWrong(t *testing.T) {
	db := lab.MariaDB(t)
	tests := []struct {
		name string
		fn   func(t testing.TB)
		want string
	}{
		{"a thing that never happens", func(t testing.TB) {
			lab.Eventually(t, 20*time.Millisecond, "pigs fly", func() bool { return false })
		}, "pigs fly"},
		{"a server that refuses its arguments", func(t testing.TB) {
			lab.Redis(t, lab.WithArgs("--no-such-option", "1"))
		}, "Bad directive"},
		{"a freeze of what is stopped", func(t testing.TB) {
			r := lab.Redis(t)
			r.Stop()
			r.Stop()
			r.Freeze()
		}, "not running"},
		{"a bad statement", func(t testing.TB) {
			lab.Exec(t, db.DSN(), "SELECT 1", "NONSENSE")
		}, "NONSENSE"},
		{"a bad DSN", func(t testing.TB) { lab.Exec(t, "no dsn", "SELECT 1") }, "invalid DSN"},
		{"a bad DSN for a pool", func(t testing.TB) { lab.Open(t, "no dsn") }, "invalid DSN"},
		{"a missing program", func(t testing.TB) {
			lab.Program(t, "no-such-server")
		}, "apt-get install"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if said := failure(t, tt.fn); !strings.Contains(said, tt.want) {
				t.Errorf("said %q, want %q in it", said, tt.want)
			}
		})
	}
}

func TestEventuallyLooksOnceMoreAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		lab.Eventually(t, time.Millisecond, "a look after a slow one", func() bool {
			looks++
			time.Sleep(time.Minute) // virtual: a busy machine
			return looks > 1
		})
	})
}

func TestFreePortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		seen[lab.FreePort(t)] = true
	}
	if len(seen) != 50 {
		t.Errorf("50 calls gave %d ports", len(seen))
	}
}

func TestFirstOutgoingPort(t *testing.T) {
	tests := []struct {
		text   string
		want   int
		reason string
	}{
		{"32768\t60999\n", 32768, "the kernel's form"},
		{"40000 50000", 40000, "another range"},
		{"1024\t65535\n", 32768, "no room below it"},
		{"", 32768, "nothing"},
		{"x y", 32768, "no number"},
	}
	for _, tt := range tests {
		if got := lab.ParseFirstOutgoingPort(tt.text); got != tt.want {
			t.Errorf("%q: %d, want %d: %s", tt.text, got, tt.want, tt.reason)
		}
	}
}

func TestThreadState(t *testing.T) {
	tests := []struct {
		stat   string
		want   byte
		reason string
	}{
		{"12 (mariadbd) S 1 2", 'S', "the usual"},
		{"12 (a) T) T 1 2", 'T', "a name may hold a parenthesis"},
		{"12 (a)", 0, "cut off"},
		{"", 0, "empty"},
	}
	for _, tt := range tests {
		if got := lab.ThreadState([]byte(tt.stat)); got != tt.want {
			t.Errorf("%q: %c, want %c: %s", tt.stat, got, tt.want, tt.reason)
		}
	}
}

func TestBaseFolder(t *testing.T) {
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ tmp, want, reason string }{
		{"/var/tmp", "/var/tmp", "short and open to all"},
		{closed, "/tmp", "other users cannot enter"},
		{"/no/such/folder", "/tmp", "missing"},
		{"/" + strings.Repeat("x", 80), "/tmp", "too long for a socket's path"},
	}
	for _, tt := range tests {
		if got := lab.BaseFolder(tt.tmp); got != tt.want {
			t.Errorf("%s: %s, want %s: %s", tt.tmp, got, tt.want, tt.reason)
		}
	}
}

func TestView(t *testing.T) {
	want := `my_uuid: 00000002-0000-11f1-8000-000000000002
#vwbeg
view_id: 3 00000001-0000-11f1-8000-000000000001 1
bootstrap: 0
member: 00000001-0000-11f1-8000-000000000001 0
member: 00000002-0000-11f1-8000-000000000002 0
#vwend
`
	if got := lab.View(1, 2); got != want {
		t.Errorf("view = %s", got)
	}
}
