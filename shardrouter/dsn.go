package shardrouter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// hidden stands for what is never printed.
const hidden = "***"

// String returns the DSN without its password and its parameters. A DSN in
// which it cannot be told for sure what is the password is hidden whole.
func (d DSN) String() string {
	s := string(d)
	at, slash := strings.LastIndexByte(s, '@'), strings.LastIndexByte(s, '/')
	switch {
	case s == "":
		return ""
	case at > slash:
		return hidden
	case at < 0 && !startsWithNetwork(s):
		return hidden
	}
	target, _, _ := strings.Cut(s[at+1:], "?")
	if at < 0 {
		return target
	}
	user, _, found := strings.Cut(s[:at], ":")
	if found {
		user += ":" + hidden
	}
	return user + "@" + target
}

// startsWithNetwork reports whether s begins like tcp(…), tcp/… or /…, so that
// it holds no account.
func startsWithNetwork(s string) bool {
	end := strings.IndexAny(s, "(/")
	return end >= 0 && isWord(s[:end])
}

// isWord reports whether s holds letters and digits only.
func isWord(s string) bool {
	for _, c := range []byte(s) {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// GoString returns what String does, quoted.
func (d DSN) GoString() string { return fmt.Sprintf("%q", d.String()) }

// Format prints what String returns, whatever the verb.
func (d DSN) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), d.String())
}

// LogValue gives slog what String returns.
func (d DSN) LogValue() slog.Value { return slog.StringValue(d.String()) }

// MarshalText gives encoders such as encoding/json what String returns.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// driverTimeouts are what a DSN gets that sets none of its own.
type driverTimeouts struct{ dial, read, write time.Duration }

// parseDSN returns the driver's configuration of every node of a DSN, in the
// order of its list. Its errors never hold the account.
//
// The list is taken apart before the driver sees it, which takes a list for
// one address. Whether a parameter was set is read from the text, because the
// driver's zero means both "unset" and "0s".
func parseDSN(dsn DSN, timeouts driverTimeouts) ([]*mysql.Config, error) {
	parts, err := splitDSN(string(dsn))
	if err != nil {
		return nil, err
	}
	set, err := checkParams(parts.params)
	if err != nil {
		return nil, err
	}
	addrs, err := splitAddrs(parts.network, parts.addr)
	if err != nil {
		return nil, err
	}
	nodes := make([]*mysql.Config, len(addrs))
	for i, addr := range addrs {
		if nodes[i], err = parseNode(parts, addr); err != nil {
			return nil, err
		}
		timeouts.apply(nodes[i], set)
		if !set["interpolateParams"] {
			nodes[i].InterpolateParams = isTextSafe(parts.params)
		}
	}
	return nodes, nil
}

// dsnParts is a DSN taken apart: account@network(addr)/database?params.
type dsnParts struct {
	account  string // user:password@, or empty
	network  string
	addr     string // what stands in the brackets, empty without any
	database string // still escaped
	params   string // still escaped
}

var (
	errAround    = errors.New("a quote or a blank stands around it: write it without")
	errNoSlash   = errors.New("no slash before the name of the database: want user:password@tcp(host:3306)/database")
	errLateAt    = errors.New("an @ stands after the last slash: the slash before the database is missing, or an @ in a parameter is not written %40")
	errUnclosed  = errors.New("the address is not closed by a bracket before the database, or a slash in a parameter is not written %2F")
	errNetwork   = errors.New("the network is none of tcp, tcp4, tcp6, unix: want user:password@tcp(host:3306)/database")
	errDatabase  = errors.New("the name of the database is not escaped as in a URL")
	errCombined  = errors.New("the driver refuses these parameters together (interpolateParams is unsafe with a multi-byte collation)")
	errReadOnly  = errors.New("parameter rejectReadOnly hides whether a statement ran: remove it")
	errNoCommit  = errors.New("parameters autocommit and completion_type leave transactions open from one request to the next: remove them")
	errStrict    = errors.New("parameter strict no longer exists in the driver: remove it")
	errNoAddress = errors.New("the brackets hold no address: want host:3306, or a list of them")
)

// splitDSN takes a DSN apart where the driver does: the password may hold any
// character, so the account ends at the last @ before the last slash. What a
// file of variables or a mounted secret leaves around it would become part of
// the names of account and database.
func splitDSN(s string) (dsnParts, error) {
	slash := strings.LastIndexByte(s, '/')
	at := strings.LastIndexByte(s, '@')
	switch {
	case s != strings.TrimSpace(s) || strings.HasPrefix(s, "'") || strings.HasPrefix(s, `"`):
		return dsnParts{}, errAround
	case slash < 0:
		return dsnParts{}, errNoSlash
	case at > slash:
		return dsnParts{}, errLateAt
	}
	p := dsnParts{account: s[:at+1]}
	p.database, p.params, _ = strings.Cut(s[slash+1:], "?")
	var listed bool
	if p.network, p.addr, listed = strings.Cut(s[at+1:slash], "("); listed {
		if !strings.HasSuffix(p.addr, ")") {
			return dsnParts{}, errUnclosed
		}
		if p.addr = strings.TrimSuffix(p.addr, ")"); p.addr == "" {
			return dsnParts{}, errNoAddress
		}
	}
	return p, p.check()
}

func (p *dsnParts) check() error {
	switch p.network {
	case "":
		p.network = "tcp"
	case "tcp", "tcp4", "tcp6", "unix":
	default:
		return errNetwork
	}
	if _, err := url.PathUnescape(p.database); err != nil {
		return errDatabase
	}
	return nil
}

// checkParams refuses what the driver would panic on, pass over in silence, or
// do against the router's promises, and returns the names that are set.
func checkParams(params string) (set map[string]bool, err error) {
	set = make(map[string]bool)
	for param := range strings.SplitSeq(params, "&") {
		if param == "" {
			continue
		}
		name, _, found := strings.Cut(param, "=")
		switch {
		case !found:
			return nil, fmt.Errorf("parameter %q has no value: want name=value", name)
		case name == "strict":
			return nil, errStrict
		case strings.Contains(strings.ToLower(param), "autocommit"), strings.Contains(strings.ToLower(param), "completion_type"):
			return nil, errNoCommit
		}
		cfg, err := mysql.ParseDSN("/?" + param)
		switch {
		case err != nil:
			return nil, fmt.Errorf("parameter %s has a value that the driver refuses", name)
		case cfg.RejectReadOnly:
			return nil, errReadOnly
		case cfg.Timeout < 0 || cfg.ReadTimeout < 0 || cfg.WriteTimeout < 0:
			return nil, fmt.Errorf("parameter %s is negative: want a duration such as 5s, or 0s for none", name)
		}
		set[name] = true
	}
	return set, nil
}

// parseNode has the driver parse the DSN as if it held this address alone, so
// that what follows from the address, as the name that TLS checks, is right.
func parseNode(p dsnParts, addr string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(p.account + p.network + "(" + addr + ")/" + p.database + "?" + p.params)
	if err != nil {
		return nil, errCombined
	}
	// The driver's lines would go to the standard error past our logger; every
	// error that they tell of is returned as well.
	cfg.Logger = &mysql.NopLogger{}
	return cfg, cfg.Apply(mysql.BeforeConnect(ownConfig))
}

// ownConfig changes nothing. That there is such a function makes the driver
// give each connection a configuration of its own; where TLS is only
// preferred, it writes to it, which would race with other connections and turn
// TLS off for all later ones.
func ownConfig(context.Context, *mysql.Config) error { return nil }

// apply sets the timeouts that the DSN left open.
func (t driverTimeouts) apply(cfg *mysql.Config, set map[string]bool) {
	if !set["timeout"] {
		cfg.Timeout = t.dial
	}
	if !set["readTimeout"] {
		cfg.ReadTimeout = t.read
	}
	if !set["writeTimeout"] {
		cfg.WriteTimeout = t.write
	}
}
