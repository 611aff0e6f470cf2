#!/bin/sh
# Gives a client of this folder a key of yours, from the root of the clone: sh examples/credentials/own-key.sh NAME
# The private part goes to .keys/NAME.jwk, the public part into NAME.yaml in place of what its last member `jwks` is.
set -eu
folder=$(dirname "$0")
mkdir -p "$folder/.keys"
public=$(npm run --silent grantry -- generate-key "$folder/.keys/$1.jwk")
rest=$(sed '/^ *jwks:$/,$d' "$folder/$1.yaml")
printf '%s\n' "$rest" > "$folder/$1.yaml"
printf '%s\n' "$public" | sed 's/^/      /' >> "$folder/$1.yaml"
