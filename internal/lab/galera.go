package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// joinTimeout bounds the wait until all members of a new cluster see each
// other.
const joinTimeout = 60 * time.Second

// providerPaths is where distributions put the Galera library.
var providerPaths = []string{
	"/usr/lib/galera/libgalera_smm.so",
	"/usr/lib64/galera-4/libgalera_smm.so",
	"/usr/lib64/galera/libgalera_smm.so",
}

// providerOptions make a dead member's eviction take two to five seconds. The
// first five must fit each other, or a node aborts; the sixth is most of what
// makes a new cluster quick.
const providerOptions = "evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.5S;" +
	"evs.suspect_timeout=PT2S;evs.inactive_timeout=PT5S;evs.install_timeout=PT5S;" +
	"evs.join_retrans_period=PT0.2S;gcache.size=16M"

// Galera starts a cluster of n nodes that hold the same rows and all take
// writes. Each is a [MariaDBServer] of its own. Start makes a stopped node join
// those that run; when none does, it makes the cluster anew from its own data,
// so start first the node that was stopped last, and the others after it.
// When a majority was killed and others run, those wait for a majority: start
// the killed nodes at the same time, each in a goroutine. Options are for every
// node.
func Galera(t testing.TB, n int, opts ...Option) []*MariaDBServer {
	t.Helper()
	program(t, "rsync") // copies the data to a node that lags too far behind
	template := cached(t, "galera", func(folder string) error { return buildGalera(t, folder) })
	members := newMembers(t, template, n, collect(opts).args)
	servers := make([]*MariaDBServer, n)
	for i, m := range members {
		if err := writeView(m, i, n); err != nil {
			t.Fatalf("lab: %v", err)
		}
		servers[i] = m.server(t, restartArgs(t, m), m.ready)
	}
	for _, s := range servers {
		s.launch()
	}
	for _, s := range servers {
		s.awaitReady()
	}
	Eventually(t, joinTimeout, "all nodes see each other", func() bool {
		return !slices.ContainsFunc(members, func(m member) bool { return m.clusterSize() != n })
	})
	return servers
}

// member is the place of one node of a cluster.
type member struct {
	node
	provider string   // path of the Galera library
	group    string   // host:port for the members' talk
	ist, sst string   // host:port for incremental and full state transfer
	peers    []string // group addresses of all members
	extra    []string // arguments of the test
}

func newMembers(t testing.TB, template string, n int, extra []string) []member {
	t.Helper()
	members := make([]member, n)
	var peers []string
	for i := range members {
		members[i] = member{
			node: newNode(t, template), provider: provider(t), extra: extra,
			group: FreeAddr(t), ist: FreeAddr(t), sst: FreeAddr(t),
		}
		peers = append(peers, members[i].group)
	}
	for i := range members {
		members[i].peers = peers
	}
	return members
}

func provider(t testing.TB) string {
	t.Helper()
	for _, path := range providerPaths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("lab: Galera's library is not installed: %s", install)
	return ""
}

// args returns the command line of a node that joins its peers.
func (m member) args() []string {
	_, groupPort, _ := net.SplitHostPort(m.group)
	options := fmt.Sprintf("base_host=127.0.0.1;base_port=%s;gmcast.listen_addr=tcp://%s;ist.recv_addr=%s;%s",
		groupPort, m.group, m.ist, providerOptions)
	return slices.Concat(m.node.args(), []string{
		"--binlog-format=ROW",
		"--innodb-autoinc-lock-mode=2",
		"--wsrep-on=ON",
		"--wsrep-provider=" + m.provider,
		"--wsrep-provider-options=" + options,
		"--wsrep-cluster-name=lab",
		"--wsrep-cluster-address=gcomm://" + strings.Join(m.peers, ","),
		"--wsrep-node-address=127.0.0.1",
		"--wsrep-node-name=" + m.addr(),
		"--wsrep-sst-method=rsync",
		"--wsrep-sst-receive-address=" + m.sst,
	}, m.extra)
}

// ready returns nil once the node has the cluster's data and takes statements.
func (m member) ready() error {
	state, err := m.status("wsrep_local_state_comment")
	if err == nil && state != "Synced" {
		err = fmt.Errorf("node is %s", state)
	}
	return err
}

func (m member) clusterSize() int {
	text, _ := m.status("wsrep_cluster_size")
	size, _ := strconv.Atoi(text)
	return size
}

func (m member) status(name string) (string, error) {
	var value string
	err := scanOnce(rootDSN(m.addr()), "SHOW GLOBAL STATUS LIKE '"+name+"'", new(string), &value)
	return value, err
}

// restartArgs returns the command line of each start of a node. The first one
// finds its peers through the view that was written for it. A later one is
// told how far its data goes, since it may have been killed, and makes a new
// cluster where there is none to join.
func restartArgs(t testing.TB, m member) func() ([]string, error) {
	together := len(m.peers) > 1 // a node alone has nobody to take the view up with
	return func() ([]string, error) {
		if together {
			together = false
			return m.args(), nil
		}
		position, err := recoverPosition(t, m)
		if err != nil {
			return nil, err
		}
		args := append(m.args(), "--wsrep-start-position="+position)
		if m.hasPeer(t.Context()) {
			return args, nil
		}
		return append(args, "--wsrep-new-cluster"), allowBootstrap(m.node)
	}
}

// hasPeer reports whether another member's process is there.
func (m member) hasPeer(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: answerTimeout}
	return slices.ContainsFunc(m.peers, func(addr string) bool {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

var recoveredPosition = regexp.MustCompile(`WSREP: Recovered position: (\S+)`)

// recoverPosition asks mariadbd for the last transaction in a data folder that
// no server uses, uuid:seqno.
func recoverPosition(t testing.TB, m member) (string, error) {
	said, err := runTool(t, nil, m.path, append(m.args()[1:], "--wsrep-recover")...)
	if err != nil {
		return "", err
	}
	found := recoveredPosition.FindSubmatch(said)
	if found == nil {
		return "", fmt.Errorf("no position in the data of %s:\n%s", m.addr(), said)
	}
	return string(found[1]), nil
}

// allowBootstrap lets a node that was not the last to leave make a cluster.
func allowBootstrap(n node) error {
	path := filepath.Join(n.data, "grastate.dat")
	state, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	state = []byte(strings.Replace(string(state), "safe_to_bootstrap: 0", "safe_to_bootstrap: 1", 1))
	if err := os.WriteFile(path, state, 0o660); err != nil {
		return err
	}
	return os.RemoveAll(viewPath(n.data))
}

// viewPath is where a node keeps the last view of the cluster it was in, to
// find it again when the power comes back.
func viewPath(data string) string { return filepath.Join(data, "gvwstate.dat") }

// writeView tells node i of n that all of them were in one cluster until now.
// With equal data, as copies of one template, they take it up again at once and
// together; the usual way, one after the other with a state transfer each,
// takes five times as long.
func writeView(m member, i, n int) error {
	path := viewPath(m.data)
	if err := os.WriteFile(path, []byte(view(i, n)), 0o660); err != nil {
		return err
	}
	return m.acc.own(path)
}

func view(i, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "my_uuid: %s\n#vwbeg\nview_id: 3 %s 1\nbootstrap: 0\n", memberID(i), memberID(0))
	for j := range n {
		fmt.Fprintf(&b, "member: %s 0\n", memberID(j))
	}
	b.WriteString("#vwend\n")
	return b.String()
}

// memberID is the uuid of node i. Galera tells members apart by the first
// group, and orders them by it.
func memberID(i int) string { return fmt.Sprintf("%08x-0000-11f1-8000-%012x", i+1, i+1) }

// buildGalera makes the data folder of a cluster's members: the plain one, after
// a first node has given it the identity of a cluster and left in an orderly
// way.
func buildGalera(t testing.TB, folder string) error {
	m := newMembers(t, plainTemplate(t), 1, nil)[0]
	first := append(m.args(), "--wsrep-new-cluster")
	s := m.server(t, func() ([]string, error) { return first, nil }, m.ready)
	s.Start()
	s.Stop()
	for _, name := range []string{"galera.cache", "gvwstate.dat"} {
		if err := os.RemoveAll(filepath.Join(m.data, name)); err != nil {
			return err
		}
	}
	copyFolder(t, m.data, folder)
	return nil
}
