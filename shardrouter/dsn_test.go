package shardrouter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/shardrouter"
)

func parse(dsn shardrouter.DSN) ([]*mysql.Config, error) {
	return shardrouter.ParseDSN(dsn, 5*time.Second, 30*time.Second, 10*time.Second)
}

func TestParseDSNAddresses(t *testing.T) {
	tests := []struct {
		reason string
		dsn    shardrouter.DSN
		want   []string
	}{
		{"one node", "app:pw@tcp(10.0.0.1:3306)/game", []string{"10.0.0.1:3306"}},
		{"the default port", "app:pw@tcp(db1)/game", []string{"db1:3306"}},
		{"a list, in its order", "app:pw@tcp(b:3307,a:3306,c)/game", []string{"b:3307", "a:3306", "c:3306"}},
		{"IPv6 with a port", "app:pw@tcp([::1]:3307)/game", []string{"[::1]:3307"}},
		{"IPv6 in brackets, without a port", "app:pw@tcp([::1])/game", []string{"[::1]:3306"}},
		{"bare IPv6", "app:pw@tcp(::1)/game", []string{"[::1]:3306"}},
		{"a mixed list", "app:pw@tcp([2001:db8::1]:3306,db2:3307)/game", []string{"[2001:db8::1]:3306", "db2:3307"}},
		{"no address at all", "app:pw@/game", []string{"127.0.0.1:3306"}},
		{"a network without an address", "app:pw@tcp/game", []string{"127.0.0.1:3306"}},
		{"brackets without a network", "app:pw@(db1:3306)/game", []string{"db1:3306"}},
		{"tcp6", "app:pw@tcp6([::1])/game", []string{"[::1]:3306"}},
		{"no account", "tcp(db1:3306)/game", []string{"db1:3306"}},
		{"no database", "app:pw@tcp(db1:3306)/", []string{"db1:3306"}},
		{"a socket", "app:pw@unix(/run/mysqld/mysqld.sock)/game", []string{"/run/mysqld/mysqld.sock"}},
		{"the default socket", "app:pw@unix/game", []string{"/tmp/mysql.sock"}},
		{"one host, two ports", "app:pw@tcp(db1:3306,db1:3307)/game", []string{"db1:3306", "db1:3307"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			nodes, err := parse(tt.dsn)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range nodes {
				got = append(got, n.Addr)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("addresses %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseDSNRefuses(t *testing.T) {
	tests := []struct {
		reason string
		dsn    shardrouter.DSN
		want   string
	}{
		{"no slash", "app:hunter2@tcp(db1:3306)", "no slash"},
		{"a slash in the password only", "app:hunter2/x@tcp(db1:3306)", "after the last slash"},
		{"an unescaped slash in a parameter", "app:hunter2@tcp(db1)/game?loc=Europe/Berlin", "not closed"},
		{"an unescaped @ in a parameter", "app:hunter2@tcp(db1)/game?x=a@b", "written %40"},
		{"an open bracket", "app:hunter2@tcp(db1/game", "not closed"},
		{"empty brackets", "app:hunter2@tcp()/game", "no address"},
		{"an empty place in the list", "app:hunter2@tcp(a:3306,)/game", `address ""`},
		{"a blank in the list", "app:hunter2@tcp(a:3306, b:3306)/game", `address " b:3306"`},
		{"a port without a host", "app:hunter2@tcp(:3306)/game", `address ":3306"`},
		{"a port that is none", "app:hunter2@tcp(a:mysql)/game", "want a port"},
		{"port 0", "app:hunter2@tcp(a:0)/game", "want a port"},
		{"a port too high", "app:hunter2@tcp(a:65536)/game", "want a port"},
		{"half a bracket", "app:hunter2@tcp([::1:3306)/game", "want host"},
		{"the same node twice", "app:hunter2@tcp(a:3306,b,A)/game", "twice"},
		{"the same IPv6 node twice", "app:hunter2@tcp([::1]:3306,[0:0:0:0:0:0:0:1])/game", "twice"},
		{"two sockets", "app:hunter2@unix(/a.sock,/b.sock)/game", "list of nodes"},
		{"another network", "app:hunter2@cloudsql(p:r:i)/game", "network"},
		{"the @ forgotten", "app:hunter2tcp(db1)/game", "network"},
		{"rejectReadOnly", "app:hunter2@tcp(a)/game?rejectReadOnly=true", "hides whether"},
		{"no commit after each statement", "app:hunter2@tcp(a)/game?autocommit=0", "leave transactions open"},
		{"a transaction after each", "app:hunter2@tcp(a)/game?Completion_Type=CHAIN", "leave transactions open"},
		{"strict, on which the driver panics", "app:hunter2@tcp(a)/game?strict=true", "no longer exists"},
		{"a parameter without a value", "app:hunter2@tcp(a)/game?parseTime", `"parseTime" has no value`},
		{"a bad value", "app:hunter2@tcp(a)/game?parseTime=hunter2", "parameter parseTime"},
		{"a bad duration", "app:hunter2@tcp(a)/game?readTimeout=5", "parameter readTimeout"},
		{"a negative duration", "app:hunter2@tcp(a)/game?readTimeout=-5s", "negative"},
		{"an unknown TLS configuration", "app:hunter2@tcp(a)/game?tls=hunter2", "parameter tls"},
		{"parameters that do not go together", "app:hunter2@tcp(a)/game?interpolateParams=true&collation=gbk_chinese_ci", "together"},
		{"a badly escaped database", "app:hunter2@tcp(a)/ga%zzme", "not escaped"},
		{"quotes that a shell would have taken off", "'app:hunter2@tcp(a)/game'", "quote"},
		{"the same with double ones", `"app:hunter2@tcp(a)/game"`, "quote"},
		{"a blank before it", " app:hunter2@tcp(a)/game", "blank"},
		{"the end of the line that a secret came in", "app:hunter2@tcp(a)/game\n", "blank"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			_, err := parse(tt.dsn)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want one that says %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

func TestParseDSNSetsWhatIsOpen(t *testing.T) {
	tests := []struct {
		reason            string
		params            string
		dial, read, write time.Duration
	}{
		{"nothing set: ours", "", 5 * time.Second, 30 * time.Second, 10 * time.Second},
		{"all set: theirs", "?timeout=1s&readTimeout=2s&writeTimeout=3s", time.Second, 2 * time.Second, 3 * time.Second},
		{"0s is set, and means none", "?readTimeout=0s", 5 * time.Second, 0, 10 * time.Second},
		{"another name that ends alike", "?xtimeout=0", 5 * time.Second, 30 * time.Second, 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			nodes, err := parse(shardrouter.DSN("app:pw@tcp(a,b)/game" + tt.params))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes {
				if n.Timeout != tt.dial || n.ReadTimeout != tt.read || n.WriteTimeout != tt.write {
					t.Errorf("%s: timeouts %v, %v, %v; want %v, %v, %v", n.Addr,
						n.Timeout, n.ReadTimeout, n.WriteTimeout, tt.dial, tt.read, tt.write)
				}
			}
		})
	}
}

func TestParseDSNSendsParametersAsText(t *testing.T) {
	for _, tt := range []struct {
		params string
		want   bool
		reason string
	}{
		{"", true, "nothing set"},
		{"?charset=utf8mb4,utf8&collation=utf8mb4_unicode_ci&parseTime=true", true, "what most set"},
		{"?charset=latin1", true, "single bytes"},
		{"?interpolateParams=false", false, "theirs"},
		{"?charset=utf8mb4,gbk", false, "half of a character may be a backslash"},
		{"?collation=sjis_japanese_ci", false, "the same"},
		{"?charset=%75tf8", false, "not read, so not trusted"},
		{"?character_set_client=gbk", false, "the same by another name"},
		{"?Character_Set_Client=%27gbk%27", false, "likewise"},
		{"?max_statement_time=5%2Ccharacter_set_client=gbk", false, "likewise, behind another variable"},
		{"?charset=utf8mb4&max_statement_time=5", true, "another variable"},
	} {
		nodes, err := parse(shardrouter.DSN("app:pw@tcp(a)/game" + tt.params))
		if err != nil || nodes[0].InterpolateParams != tt.want {
			t.Errorf("%s: %q: %v, %v; want %v", tt.reason, tt.params, nodes[0].InterpolateParams, err, tt.want)
		}
	}
}

func TestParseDSNKeepsTheRest(t *testing.T) {
	nodes, err := parse("app:p@ss:w/rd?@tcp(db1,db2)/my%2Fgame?multiStatements=true&interpolateParams=true&checkConnLiveness=false&tls=true&max_statement_time=5")
	if err != nil {
		t.Fatal(err)
	}
	for i, host := range []string{"db1", "db2"} {
		n := nodes[i]
		if n.User != "app" || n.Passwd != "p@ss:w/rd?" || n.DBName != "my/game" {
			t.Errorf("account and database: %q, %q, %q", n.User, n.Passwd, n.DBName)
		}
		if !n.MultiStatements || !n.InterpolateParams || n.CheckConnLiveness {
			t.Error("a parameter of the DSN was changed")
		}
		if n.TLS.ServerName != host {
			t.Errorf("TLS checks the name %q, want %q", n.TLS.ServerName, host)
		}
		if n.Params["max_statement_time"] != "5" {
			t.Errorf("system variables %v", n.Params)
		}
		if _, silent := n.Logger.(*mysql.NopLogger); !silent {
			t.Errorf("logger %T, want a silent one", n.Logger)
		}
	}
}

func TestDSNString(t *testing.T) {
	tests := []struct {
		reason string
		dsn    shardrouter.DSN
		want   string
	}{
		{"the usual", "app:hunter2@tcp(db1:3306,db2:3306)/game?parseTime=true", "app:***@tcp(db1:3306,db2:3306)/game"},
		{"no password", "app@tcp(db1:3306)/game", "app@tcp(db1:3306)/game"},
		{"no account", "tcp(db1:3306)/game", "tcp(db1:3306)/game"},
		{"an @ in the password", "app:hunter2@x@tcp(db1)/game", "app:***@tcp(db1)/game"},
		{"the slash forgotten", "app:hunter2/x@tcp(db1)", "***"},
		{"the @ forgotten", "app:hunter2tcp(db1)/game", "***"},
		{"nothing but a password", "hunter2", "***"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if got := tt.dsn.String(); got != tt.want {
				t.Errorf("String() = %q, want %q", got, tt.want)
			}
		})
	}
}

// printed returns a DSN in every way that could bring it to a log.
func printed(d shardrouter.DSN) string {
	var b bytes.Buffer
	shard := shardrouter.Shard{Name: "a", DSN: d}
	for _, v := range []any{d, &shard, shard, []shardrouter.DSN{d}, map[shardrouter.DSN]int{d: 1}, shardrouter.Config{Shards: []shardrouter.Shard{shard}}} {
		fmt.Fprintf(&b, "%v %+v %#v %s %q %d %t %-90s|%.3s\n", v, v, v, v, v, v, v, v, v)
		fmt.Fprintln(&b, v)
	}
	b.WriteString(d.GoString())
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		slog.New(h).Info("shard", "dsn", d, "shard", shard, "list", []shardrouter.DSN{d})
	}
	_ = json.NewEncoder(&b).Encode(shard)
	_, err := parse(d)
	fmt.Fprintln(&b, err)
	err = shardrouter.Config{Shards: []shardrouter.Shard{shard}}.Validate()
	fmt.Fprintln(&b, err)
	// %x of what is printed stands for the same text.
	fmt.Fprintf(&b, "%s", unhex(fmt.Sprintf("%x", d)))
	return b.String()
}

func unhex(s string) (text string) {
	var raw []byte
	_, _ = fmt.Sscanf(s, "%x", &raw)
	return string(raw)
}

// FuzzDSNHidesThePassword holds that what stands between the first colon and
// the last @ never comes out, whether the DSN can be read or not.
func FuzzDSNHidesThePassword(f *testing.F) {
	f.Add("app", "", "", "tcp(db1:3306)/game?parseTime=true")
	f.Add("app", "/", "@", "tcp(db1:3306)")
	f.Add("", "(", ")/", "tcp(a,b)/game?tls=x&timeout=1")
	f.Add("tcp(a", "?", "=@", "")
	f.Add("app", "@tcp(", ":3306)/", "?strict=1")
	f.Fuzz(func(t *testing.T, user, before, after, rest string) {
		const secret = "hunter2"
		if strings.Contains(user+rest, secret) {
			return
		}
		d := shardrouter.DSN(user + ":" + before + secret + after + "@" + rest)
		out := printed(d)
		if i := strings.Index(out, secret); i >= 0 {
			t.Errorf("%q: the password comes out: …%s…", string(d), out[max(0, i-80):min(len(out), i+80)])
		}
	})
}

// FuzzParseDSN holds that no text brings the parser down, that every node is
// an address that can be dialled, and that the driver agrees on a DSN of one.
func FuzzParseDSN(f *testing.F) {
	for _, s := range []string{
		"app:pw@tcp(10.0.0.1:3306)/game", "app:pw@tcp(a:3306,b)/game?timeout=0s", "app@unix(/x)/",
		"tcp([::1],[::2]:3307)/", "/", "?strict=1", "a:b@tcp(c)/d?strict=1", "@@((,))//?&&==",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		nodes, err := parse(shardrouter.DSN(s))
		if err != nil {
			return
		}
		if len(nodes) == 0 {
			t.Fatal("neither nodes nor an error")
		}
		seen := make(map[string]bool)
		for _, n := range nodes {
			if n.Addr == "" || seen[n.Addr] {
				t.Errorf("%q: address %q is empty or stands twice", s, n.Addr)
			}
			seen[n.Addr] = true
		}
		if want, err := mysql.ParseDSN(s); len(nodes) == 1 && err == nil {
			if got := nodes[0]; got.User != want.User || got.Passwd != want.Passwd || got.DBName != want.DBName {
				t.Errorf("%q: account or database differs from the driver's", s)
			}
		}
	})
}
