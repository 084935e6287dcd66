package middleware

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/shardhop/shardhop/internal/httpanswer"
)

// answer writes the verdict: a problem document (RFC 9457) for programs, a
// page for browsers, the header alone for HEAD.
func (v verdict) answer(w http.ResponseWriter, r *http.Request, retryAfter time.Duration) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	if v.retry {
		h.Set("Retry-After", httpanswer.RetryAfter(retryAfter))
	}
	body := v.problem()
	h.Set("Content-Type", "application/problem+json")
	if httpanswer.PrefersHTML(r.Header.Values("Accept")) {
		body = v.page()
		h.Set("Content-Type", "text/html; charset=utf-8")
	}
	h.Del("Content-Length") // net/http knows it, unless a writer of the application compresses
	w.WriteHeader(v.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body)) // a client that is gone is no trouble
	}
}

func (v verdict) problem() string {
	return fmt.Sprintf("{\"status\":%d,\"title\":%q,\"code\":%q}\n", v.status, http.StatusText(v.status), v.code)
}

func (v verdict) page() string {
	text := "Something went wrong on our side."
	if v.retry {
		text = "We will be back in a moment. You are still signed in: please try again shortly."
	}
	return strings.NewReplacer("{title}", http.StatusText(v.status), "{text}", text).Replace(page)
}

// page needs nothing from anywhere, so that it shows under any content policy.
const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<h1>{title}</h1>
<p>{text}</p>
</html>
`
