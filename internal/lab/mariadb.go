package lab

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// MariaDBServer is a mariadbd of its own, with an empty database game. Its data
// outlives Stop and Kill.
type MariaDBServer struct {
	*Process
}

// MariaDB starts a mariadbd that ends with t.
func MariaDB(t testing.TB, opts ...Option) *MariaDBServer {
	t.Helper()
	n := newNode(t, plainTemplate(t))
	args := slices.Concat(n.args(), collect(opts).args)
	s := n.server(t, func() ([]string, error) { return args, nil }, func() error { return queryOnce(rootDSN(n.addr())) })
	s.Start()
	return s
}

// DSN returns the data source name of the account app, which owns the database
// game and has no administrative privilege, so that read_only binds it.
func (s *MariaDBServer) DSN() string { return s.DSNAt(s.Addr()) }

// DSNAt is DSN with another address, such as that of a proxy in front of the
// server.
func (s *MariaDBServer) DSNAt(addr string) string { return appDSN(addr) }

// RootDSN returns the data source name of the account root, which may do
// everything. Its database is game as well.
func (s *MariaDBServer) RootDSN() string { return rootDSN(s.Addr()) }

// node is the place of one mariadbd: its folders and its port.
type node struct {
	path   string // of the program
	acc    account
	port   int
	folder string // holds log and socket
	data   string // the data folder
	tmp    string // its own: a starting server empties the one it is given
}

// newNode copies template into a folder of its own.
func newNode(t testing.TB, template string) node {
	t.Helper()
	n := node{path: program(t, "mariadbd"), acc: serverAccount(t), port: FreePort(t), folder: workFolder(t, "mariadb")}
	if err := n.acc.own(n.folder); err != nil {
		t.Fatal(err)
	}
	n.tmp = subfolder(t, n.folder, "tmp", n.acc)
	n.data = filepath.Join(n.folder, "data")
	copyFolder(t, template, n.data)
	return n
}

func (n node) addr() string { return loopback(n.port) }

// args returns the command line of a single server.
func (n node) args() []string {
	return slices.Concat([]string{n.path}, baseArgs(n.acc, n.data, n.tmp), []string{
		"--port=" + strconv.Itoa(n.port),
		"--bind-address=127.0.0.1",
		"--socket=" + filepath.Join(n.folder, "sock"),
		"--pid-file=" + filepath.Join(n.folder, "pid"),
		"--max-connections=500",
	})
}

// server makes the node's process. It is not started yet.
func (n node) server(t testing.TB, argv func() ([]string, error), ready func() error) *MariaDBServer {
	return &MariaDBServer{newProcess(t, spec{
		name:   "mariadbd",
		addr:   n.addr(),
		folder: n.folder,
		argv:   argv,
		env:    []string{"TMPDIR=" + n.tmp},
		ready:  ready,
	})}
}

// baseArgs are the options that servers and the making of a template share.
// Each one buys start-up time; none lets a killed server lose a commit.
func baseArgs(acc account, data, tmp string) []string {
	return slices.Concat([]string{
		"--no-defaults", // has to come first
		"--datadir=" + data,
		"--tmpdir=" + tmp,
		"--skip-name-resolve",
		"--performance-schema=OFF",
		"--innodb-buffer-pool-size=48M",
		"--innodb-buffer-pool-load-at-startup=OFF",
		"--innodb-buffer-pool-dump-at-shutdown=OFF",
		"--innodb-log-file-size=16M",
		"--innodb-flush-log-at-trx-commit=2", // survives the process, if not the machine
	}, acc.args())
}

// copyFolder copies a data folder with its owners. cp shares the blocks where
// the file system can.
func copyFolder(t testing.TB, from, to string) {
	t.Helper()
	if _, err := runTool(t, nil, "cp", "-a", "--reflink=auto", from, to); err != nil {
		t.Fatalf("lab: copy of %s: %v", from, err)
	}
}
