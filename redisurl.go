package shardhop

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// redisURLForm is what a URL has to look like, in words for an error.
const redisURLForm = "redis://[user:password@]host:port[/db], rediss://… or unix:///path (standalone only), " +
	"further hosts as ?addr=host:port&addr=host:port, ports from 1 to 65535"

// isPlausible checks what go-redis takes as it comes. It fills in a host that is
// missing, which hides a variable that was cut short, ignores what it has no use
// for, dials ports that cannot be, and panics at negative sizes.
func isPlausible(rawURL string, mode RedisMode) bool {
	u, err := url.Parse(rawURL)
	if err != nil || u.Fragment != "" || u.Opaque != "" {
		return false
	}
	options, err := url.ParseQuery(u.RawQuery)
	if err != nil || !haveCredibleNumbers(options) {
		return false
	}
	if u.Scheme == "unix" {
		return u.Host == ""
	}
	for _, addr := range options["addr"] {
		host, port, err := net.SplitHostPort(addr)
		if err != nil || host == "" || !isPort(port) {
			return false
		}
	}
	return namesHost(u) && isDatabase(strings.Trim(u.Path, "/"), mode) && isDatabase(options.Get("db"), mode)
}

// namesHost reports whether u says where the server is. A port may be left out.
func namesHost(u *url.URL) bool {
	return u.Hostname() != "" && !strings.HasSuffix(u.Host, ":") && (u.Port() == "" || isPort(u.Port()))
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// isDatabase reports whether text is a number of a database, or empty. A cluster
// has none but 0.
func isDatabase(text string, mode RedisMode) bool {
	if text == "" {
		return true
	}
	n, err := strconv.ParseUint(text, 10, 31)
	return err == nil && (n == 0 || mode != RedisCluster)
}

// redisSizes are the options that count something. Others may be negative: that
// switches off a timeout, or retries.
var redisSizes = []string{
	"pool_size", "min_idle_conns", "max_idle_conns", "max_active_conns", "max_concurrent_dials",
	"pipeline_read_buffer_size", "pipeline_write_buffer_size", "max_redirects",
}

func haveCredibleNumbers(options url.Values) bool {
	for name, values := range options {
		for _, value := range values {
			switch {
			case slices.Contains(redisSizes, name):
				if _, err := strconv.ParseUint(value, 10, 31); err != nil {
					return false
				}
			case name == "protocol" && value != "2" && value != "3":
				return false
			}
		}
	}
	return true
}

// plainConfig is a Config without its methods.
type plainConfig Config

// Format prints the configuration without a password: of RedisURL it shows the
// scheme and the hosts. The data source names keep theirs by themselves.
func (cfg Config) Format(s fmt.State, verb rune) {
	cfg.RedisURL = cfg.shownRedisURL()
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), plainConfig(cfg))
}

// LogValue gives slog what Format prints.
func (cfg Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", cfg)) }

// shownRedisURL is RedisURL without what may be secret: the account, and the
// options, which can hold another.
func (cfg Config) shownRedisURL() string {
	if cfg.RedisURL == "" {
		return ""
	}
	u, err := url.Parse(cfg.RedisURL)
	if _, wrong := parseRedis(cfg.RedisURL, cfg.RedisMode, "any"); wrong != nil || err != nil {
		return "(malformed)" // where it is cut at the wrong place, a host is a password
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.User != nil {
		shown.User = url.User("xxxxx")
	}
	if addrs := u.Query()["addr"]; len(addrs) > 0 {
		shown.RawQuery = "addr=" + strings.Join(addrs, "&addr=")
	}
	return shown.String()
}
