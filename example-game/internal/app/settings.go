package app

import (
	"net"
	"strings"

	"github.com/shardhop/shardhop"
	"github.com/shardhop/shardhop/internal/envread"
	"github.com/shardhop/shardhop/middleware"
)

// settings is everything that the environment says.
type settings struct {
	addr       string
	adminAddr  string
	adminToken string
	library    shardhop.Config
}

// readSettings reads vars. Its error names every problem in one line.
func readSettings(vars map[string]string) (settings, error) {
	r := envread.New(vars)
	s := settings{
		addr:       r.String("ADDR", "127.0.0.1:8080"),
		adminAddr:  r.String("ADMIN_ADDR", "127.0.0.1:8081"),
		adminToken: r.String("ADMIN_TOKEN", ""),
	}
	for variable, addr := range map[string]string{"ADDR": s.addr, "ADMIN_ADDR": s.adminAddr} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			r.Problemf(variable, "%s, want an address such as 127.0.0.1:8080", envread.Quote(addr))
		}
	}
	library, err := shardhop.ConfigFrom(vars)
	r.Add(err)
	if err := r.Err(); err != nil {
		return settings{}, err
	}
	library.Middleware = middleware.Config{Lazy: true, ShardHeader: "X-Shard"}
	s.library = library
	return s, nil
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
