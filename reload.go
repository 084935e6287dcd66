package shardhop

import (
	"context"

	"github.com/shardhop/shardhop/shardrouter"
)

// Reload reads the shards from the environment, and from the file that
// SHARDS_FILE names, once more, and has the router work with them while requests
// are served. Where anything is wrong, nothing changes, and the error says all
// of it; see [shardrouter.Router.Reload]. A program whose shards do not come from
// the environment calls that itself.
func (h *Hop) Reload(ctx context.Context) error {
	cfg, err := shardrouter.ConfigFromEnv()
	if err != nil {
		return err
	}
	return h.Router.Reload(ctx, cfg)
}
