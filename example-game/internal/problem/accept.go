package problem

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// PrefersHTML reports whether the Accept header ranks HTML above JSON. A tie is
// no preference: programs often say */*.
func PrefersHTML(r *http.Request) bool {
	weights := map[string]float64{}
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		weights[name] = 1
		if q, given := params["q"]; given {
			weights[name], _ = strconv.ParseFloat(q, 64) // nonsense weighs nothing
		}
	}
	json := max(weight(weights, "application/problem+json"), weight(weights, "application/json"))
	return weight(weights, "text/html") > json
}

// weight is that of the most specific range that covers name.
func weight(weights map[string]float64, name string) float64 {
	major, _, _ := strings.Cut(name, "/")
	for _, covers := range [...]string{name, major + "/*", "*/*"} {
		if w, ok := weights[covers]; ok {
			return w
		}
	}
	return 0
}
