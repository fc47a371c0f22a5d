# Bursts of FIFO and RR tasks beside hogs in sessions of their own, and a task whose policy, nice value and CPUs change.
# rt.sh CPUS
burst() { echo "while :; do i=0; while [ \$i -lt $1 ]; do i=\$((i+1)); done; sleep $2; done"; }
for hog in 1 2; do setsid sh -c 'while :; do :; done' & done
for k in $(seq $1); do sh -c "$(burst 2000 0.003)" & done
chrt -f 10 sh -c "$(burst 500 0.007)" &
chrt -r 20 sh -c "$(burst 900 0.011)" &
chrt -r 20 sh -c "$(burst 900 0.013)" &
chrt -b 0 sh -c "$(burst 5000 0.001)" &
p=$!
sleep 1
chrt -p -f 5 $p; sleep 0.2; chrt -p -o 0 $p; renice -n 5 -p $p; sleep 0.2; taskset -p 1 $p; sleep 0.3
chrt -p -i 0 $p; sleep 0.3; chrt -p -o 0 $p; sleep 1
kill $(jobs -p)
sleep 0.1
