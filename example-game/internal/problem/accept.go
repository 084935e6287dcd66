package problem

import (
	"net/http"

	"github.com/shardhop/shardhop/internal/httpanswer"
)

// PrefersHTML reports whether the Accept header ranks HTML above JSON. A tie is
// no preference: programs often say */*.
func PrefersHTML(r *http.Request) bool {
	return httpanswer.PrefersHTML(r.Header.Values("Accept"))
}
