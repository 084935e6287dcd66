package httpanswer

import "net/http"

// IsInterim reports a status after which the real answer is still to come.
func IsInterim(status int) bool {
	return status >= 100 && status < 200 && status != http.StatusSwitchingProtocols
}
