// Package problem answers with an error: a problem document (RFC 9457) for
// programs, a small page where the Accept header prefers HTML.
package problem

import (
	"encoding/json"
	"html/template"
	"net/http"
)

// Problem is an answer that says what went wrong, in words for a person and in
// a code for a program. It is also an error, so that it can be returned up to
// where the answer is written.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Code   string `json:"code"`
}

// New returns a problem.
func New(status int, code, title string) *Problem {
	return &Problem{Status: status, Title: title, Code: code}
}

// Error gives the title.
func (p *Problem) Error() string { return p.Title }

// Write answers with p. A 503 tells the client to come again in a second.
func (p *Problem) Write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept")
	if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	if PrefersHTML(r) {
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(p.Status)
		_ = page.Execute(w, p) // a client that is gone is no trouble
		return
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

var page = template.Must(template.New("problem").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<link rel="stylesheet" href="/assets/style.css">
<main><h1>{{.Title}}</h1><p><a href="/">Back to the start</a></p></main>
</html>
`))
