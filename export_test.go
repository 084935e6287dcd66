package shardhop

// NewRedis is the constructor behind Config.RedisURL.
var NewRedis = newRedis
