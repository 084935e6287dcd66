package app

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shardhop/shardhop/metrics"
)

// exposition is the handler of GET /metrics: the shards, the process and Go.
func exposition(shards *metrics.Collector, log *slog.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(shards, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		MaxRequestsInFlight: 4,
	})
}
