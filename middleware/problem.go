package middleware

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// answer writes the verdict: a problem document (RFC 9457) for programs, a
// page for browsers, the header alone for HEAD.
func (v verdict) answer(w http.ResponseWriter, r *http.Request, retryAfter time.Duration) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	if v.retry {
		h.Set("Retry-After", strconv.Itoa(seconds(retryAfter)))
	}
	body := v.problem()
	h.Set("Content-Type", "application/problem+json")
	if prefersHTML(r.Header.Values("Accept")) {
		body = v.page()
		h.Set("Content-Type", "text/html; charset=utf-8")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
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

// seconds rounds up, to one at least.
func seconds(d time.Duration) int {
	return max(1, int((d+time.Second-1)/time.Second))
}

// prefersHTML reports whether an Accept header ranks HTML above JSON. A tie is
// no preference: programs often say */*, browsers never do so alone.
func prefersHTML(accept []string) bool {
	ranges := parseAccept(accept)
	json := max(quality(ranges, "application/problem+json"), quality(ranges, "application/json"))
	return quality(ranges, "text/html") > json
}

// mediaRange is one element of an Accept header.
type mediaRange struct {
	name string
	q    float64
}

// parseAccept leaves out what it cannot read.
func parseAccept(accept []string) []mediaRange {
	var ranges []mediaRange
	for element := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, params, err := mime.ParseMediaType(element)
		if err != nil {
			continue
		}
		q := 1.0
		if s, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(s, 64); err != nil || q < 0 || q > 1 {
				continue
			}
		}
		ranges = append(ranges, mediaRange{name, q})
	}
	return ranges
}

// quality is that of the most specific range that covers mediaType.
func quality(ranges []mediaRange, mediaType string) float64 {
	major, _, _ := strings.Cut(mediaType, "/")
	for _, name := range [...]string{mediaType, major + "/*", "*/*"} {
		for _, r := range ranges {
			if r.name == name {
				return r.q
			}
		}
	}
	return 0
}
