# syntax=docker/dockerfile:1
# The hub over HTTP in a distroless image. Build it, make a token, put the lines that this prints below `[serve]` into a
# copy of packaging/docker/toolhub.toml in a folder of your own, and run:
#
#   docker build -t toolhub .
#   docker run --rm toolhub serve --new-token me
#   docker run -p 127.0.0.1:7460:7460 -v toolhub:/data -v ./my-folder:/etc/toolhub:ro toolhub
#
# Without a token the hub refuses to listen for other machines, and the container ends with that message. MCP servers are
# read from `mcp.json` in the same folder. The image has no shell, Node or Python: it serves native tools and MCP servers
# over HTTP; servers over stdio need an image of your own that adds their programs to this one.
#
# Linted with hadolint; not built or run by the project's tests.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
ARG PROFILE=dist
# The pages of memory on ARM64 have 4, 16 or 64 KiB, by kernel: the allocator is built for the largest, which serves all.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    if [ "$(uname -m)" = aarch64 ]; then export JEMALLOC_SYS_WITH_LG_PAGE=16; fi \
    && cargo install --locked --no-track --profile "$PROFILE" --features full --path crates/cli --root /out/usr/local \
    && install -D -m 644 -t /out/usr/share/doc/toolhub LICENSE-APACHE LICENSE-MIT \
    && install -D -m 644 crates/core/NOTICE /out/usr/share/doc/toolhub/NOTICE-CLDR.txt \
    && install -D -m 644 crates/search/data/README.md /out/usr/share/doc/toolhub/NOTICE-CEDICT.md \
    && install -D -m 644 packaging/docker/toolhub.toml /out/etc/toolhub/toolhub.toml \
    && install -d /data

# Debian's C library and certificates, a user without rights, and nothing else.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /out /
COPY --from=build --chown=65532:65532 /data /data
ENV TOOLHUB_HOME=/data
VOLUME /data
USER 65532:65532
WORKDIR /data
EXPOSE 7460
# The image has no curl: the program asks its own server. Another port goes into the configuration (`[serve] bind`), which
# both commands read, not into the arguments.
HEALTHCHECK --interval=30s --timeout=6s --start-period=10s --retries=3 \
    CMD ["toolhub", "--config", "/etc/toolhub/toolhub.toml", "--quiet", "serve", "--check"]
ENTRYPOINT ["toolhub", "--config", "/etc/toolhub/toolhub.toml"]
CMD ["serve"]
