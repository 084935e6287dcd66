package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/shardhop/shardhop/example-game/internal/problem"
	"github.com/shardhop/shardhop/example-game/internal/web"
)

// CheckExposure refuses an address that other machines can reach, unless there
// is a token.
func CheckExposure(addr, token string) error {
	if token != "" || isLoopback(hostOf(addr)) {
		return nil
	}
	return fmt.Errorf("ADMIN_ADDR %q can be reached from other machines: set ADMIN_TOKEN, or use a loopback address such as 127.0.0.1:8081", addr)
}

// guard turns away what does not name this listener as its host, and what
// comes from another origin.
func (a *api) guard(next http.Handler) http.Handler {
	machine, _ := os.Hostname() // without one, the name is not accepted
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hostAllowed(hostOf(r.Host), hostOf(a.Addr), machine) {
			problem.New(http.StatusForbidden, "wrong_host", "This listener does not go by that name").Write(w, r)
			return
		}
		if !sameOrigin(r) {
			problem.New(http.StatusForbidden, "cross_origin", "This request comes from another site").Write(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostAllowed reports whether a request may call this listener by host. A name
// that an attacker made to point here is none of these: loopback names, the
// configured host, and, where that is every address of the machine, addresses
// and the machine's own name.
func hostAllowed(host, configured, machine string) bool {
	if isLoopback(host) || strings.EqualFold(host, configured) && host != "" {
		return true
	}
	if !isEverywhere(configured) {
		return false
	}
	_, err := netip.ParseAddr(host)
	return err == nil || machine != "" && strings.EqualFold(host, machine)
}

// sameOrigin reports whether a request comes from this listener's own page or
// from no page at all.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host)
}

// needToken asks for the bearer token, if there is one. Browsers get the page,
// which asks for it.
func (a *api) needToken(next http.Handler) http.Handler {
	if a.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(a.Token))
	locked := web.Admin(http.StatusUnauthorized)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(token))
		if strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		if r.Method == http.MethodGet && problem.PrefersHTML(r) {
			locked(w, r)
			return
		}
		problem.New(http.StatusUnauthorized, "no_token", "The operators' token is missing or wrong").Write(w, r)
	})
}

// hostOf cuts the port off, and the brackets of an IPv6 address.
func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func isEverywhere(host string) bool {
	if host == "" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}
