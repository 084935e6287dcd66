package app

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardhop/shardhop"
	"github.com/shardhop/shardhop/example-game/internal/admin"
	"github.com/shardhop/shardhop/internal/envread"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

// ownNodes are the embedded shards.
var ownNodes = []string{"server_1", "server_2", "server_3"}

// ownRetention is how long the embedded MySQL keeps outcome rows, unless the
// environment says otherwise. With each it gets slower.
const ownRetention = "10m"

// minLifetime is the shortest life of a session that a cookie can have.
const minLifetime = time.Second

// What stands for an embedded part while the variables are checked: it starts
// only when they are right.
const (
	standInRedis = "redis://127.0.0.1:6379"
	standInDSN   = "game@tcp(127.0.0.1:3306)/game"
)

// settings is everything that the environment says.
type settings struct {
	addr       string
	adminAddr  string
	adminToken string
	library    shardhop.Config

	ownShards bool // the shards are embedded, and have no address yet
	ownRedis  bool // Redis is embedded, and has no address yet
}

// readSettings reads vars. Its error names every problem in one line.
func readSettings(vars map[string]string) (settings, error) {
	full, fileErr := shardrouter.WithFile(vars)
	r := envread.New(full)
	r.Add(fileErr)
	vars = full
	s := settings{
		addr:       r.String("ADDR", "127.0.0.1:8080"),
		adminAddr:  r.String("ADMIN_ADDR", "127.0.0.1:8081"),
		adminToken: r.String("ADMIN_TOKEN", ""),
		ownShards:  r.String("SHARDS", "") == "",
		ownRedis:   r.String("REDIS_URL", "") == "",
	}
	checkAddr(r, "ADDR", s.addr)
	if checkAddr(r, "ADMIN_ADDR", s.adminAddr) {
		r.Add(admin.CheckExposure(s.adminAddr, s.adminToken))
	}
	checkToken(r, s.adminToken)
	library, err := shardhop.ConfigFrom(s.complete(r, vars))
	r.Add(err)
	if life := library.SessionLifetime; err == nil && life < minLifetime {
		r.Problemf("SESSION_LIFETIME", "%v, want %v or more: cookies count whole seconds", life, minLifetime)
	}
	if err := r.Err(); err != nil {
		return settings{}, err
	}
	library.Middleware = middleware.Config{Lazy: true, ShardHeader: "X-Shard"}
	s.library = library
	return s, nil
}

// checkAddr reports whether addr is an address to listen on.
func checkAddr(r *envread.Reader, variable, addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		r.Problemf(variable, "%s, want an address such as 127.0.0.1:8080", envread.Quote(addr))
		return false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		r.Problemf(variable, "port %s, want a number from 0 to 65535", envread.Quote(port))
		return false
	}
	return true
}

// checkToken refuses a token that no Authorization header can carry.
func checkToken(r *envread.Reader, token string) {
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		r.Problemf("ADMIN_TOKEN", "has blanks or characters that no header carries: want printable ASCII")
	}
}

// complete returns vars with a stand-in for everything that is embedded. A
// variable of a real server whose leading variable was forgotten is a problem:
// the embedded part would take its place without a word.
func (s settings) complete(r *envread.Reader, vars map[string]string) map[string]string {
	full := maps.Clone(vars)
	if s.ownShards {
		for _, name := range slices.Sorted(maps.Keys(vars)) {
			if strings.HasPrefix(name, "SHARD_") && strings.HasSuffix(name, "_DSN") {
				r.Problemf(name, "is set, but SHARDS is not: list the names of the shards there, such as server_1,server_2")
			}
		}
		full["SHARDS"] = strings.Join(ownNodes, ",")
		if full["SHARD_OUTCOME_RETENTION"] == "" {
			full["SHARD_OUTCOME_RETENTION"] = ownRetention
		}
		if full["SHARD_COPIES"] == "" { // the embedded nodes of a group are
			full["SHARD_COPIES"] = string(shardrouter.CopiesMarker)
		}
		for _, name := range ownNodes {
			full["SHARD_"+strings.ToUpper(name)+"_DSN"] = standInDSN
		}
	}
	if s.ownRedis {
		for _, name := range []string{"REDIS_MODE", "REDIS_SENTINEL_MASTER"} {
			if vars[name] != "" {
				r.Problemf(name, "is set, but REDIS_URL is not: want a URL such as %s", standInRedis)
			}
			delete(full, name)
		}
		full["REDIS_URL"] = standInRedis
	}
	return full
}

// variables makes a map of an environment. An empty variable counts as unset.
func variables(environ []string) map[string]string {
	vars := map[string]string{}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); value != "" {
			vars[name] = value
		}
	}
	return vars
}
