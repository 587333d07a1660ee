$HEFT ls "$(printf 'no\033[31m\nfile')"
