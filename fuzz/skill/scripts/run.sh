#!/bin/sh
# Stands for the script that seeds of `skill_frontmatter` declare.
