package sessionstore

// Codec is the codec of every manager.
var Codec = codec{values: textCodec{}}

// The codec of one value.
var (
	EncodeValue = textCodec{}.encode
	DecodeValue = textCodec{}.decode
)
