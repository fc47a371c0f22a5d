# As a `make -j`: workers that run short processes one after the other, with nice values, and change their own CPUs.
# build.sh CPUS
worker() {
	for step in $(seq 14); do
		v=$((step * 7 + $1 * 5))
		nice -n $((v % 5 * 4)) sh -c "i=0; while [ \$i -lt $((100 + v * 97 % 900)) ]; do i=\$((i+1)); done; echo $step | cat >/dev/null"
		[ $((v % 3)) = 0 ] && taskset -p $((v % $2 + 1)) $$ >/dev/null
		for i in 1 2; do sh -c :; done
		sleep 0.00$((v % 7))
		[ $((v % 4)) = 0 ] && taskset -p $(((1 << $2) - 1)) $$ >/dev/null
	done
}
for w in $(seq $(($1 * 2 + 1))); do worker $w $1 & done
wait
