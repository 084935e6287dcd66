package httpanswer

import (
	"mime"
	"strconv"
	"strings"
)

// PrefersHTML reports whether the values of a request's Accept header rank HTML
// above JSON. A tie is no preference: programs often say */*, browsers never do
// so alone.
func PrefersHTML(accept []string) bool {
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
