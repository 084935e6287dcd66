package middleware

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-chi/chi/v5"
)

// original is a request, and the header of its answer, as they were before the
// first run. It is immutable. What only hangs on the request's own struct, such
// as http.ServeMux's pattern, need not be kept: every run has a copy of that.
type original struct {
	request        *http.Request
	url            url.URL
	header         fields
	form, postForm url.Values   // nil where nobody had parsed them
	route          *chi.Context // nil outside of chi
	answer         fields
}

func newOriginal(answer http.Header, r *http.Request) *original {
	o := &original{request: r, url: *r.URL, header: copyFields(r.Header), answer: copyFields(answer)}
	o.form, o.postForm = cloneValues(r.Form), cloneValues(r.PostForm)
	if rc := chi.RouteContext(r.Context()); rc != nil {
		o.route = rc.Clone()
	}
	return o
}

// again returns the request for another run under ctx. It shares nothing that
// a run may change with the one before, whose goroutines may still read.
func (o *original) again(ctx context.Context) *http.Request {
	if o.route != nil {
		ctx = context.WithValue(ctx, chi.RouteCtxKey, o.route.Clone())
	}
	r := o.request.WithContext(ctx)
	u := o.url
	r.URL = &u
	r.Header = make(http.Header, len(o.header))
	o.header.restore(r.Header)
	r.Form, r.PostForm = cloneValues(o.form), cloneValues(o.postForm)
	return r
}

// restoreAnswer takes out of h what a run has put there.
func (o *original) restoreAnswer(h http.Header) {
	clear(h)
	o.answer.restore(h)
}

// fields is a copy of a header that costs two allocations, where a clone makes
// a map.
type fields []field

type field struct {
	name   string
	values []string
}

func copyFields(h http.Header) fields {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	all, f := make([]string, 0, n), make(fields, 0, len(h))
	for name, values := range h {
		start := len(all)
		all = append(all, values...)
		f = append(f, field{name, all[start:len(all):len(all)]})
	}
	return f
}

// restore adds the fields to h.
func (f fields) restore(h http.Header) {
	for _, fd := range f {
		h[fd.name] = slices.Clone(fd.values)
	}
}

func cloneValues(v url.Values) url.Values { return url.Values(http.Header(v).Clone()) }
