package game

import (
	"log/slog"
	"net/http"
)

// levelOf is the level at which a failed request is logged: one whose client
// has left is no trouble.
func levelOf(r *http.Request) slog.Level {
	if r.Context().Err() != nil {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

func attrs(r *http.Request, err error) []slog.Attr {
	return []slog.Attr{slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("error", err)}
}
