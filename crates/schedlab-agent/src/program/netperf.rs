//! The program netperf: the command lines of its server and clients, and the line that each client prints.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use schedlab_model::{Nanos, MSEC, SEC};
use schedlab_scenario::Program;
use schedlab_workload::catalogue::OptionValue;

use super::{whole_seconds, ParsedOutput};
use crate::clock;
use crate::error::{AgentError, Result};

/// How long the server may take until it accepts connections.
const READY: Nanos = 10 * SEC;
/// The columns that a client prints, as netperf calls them.
const COLUMNS: &str = "THROUGHPUT,MEAN_LATENCY,P50_LATENCY,P99_LATENCY,MIN_LATENCY,MAX_LATENCY";

/// netserver, which runs as long as the clients.
#[derive(Debug)]
pub struct Server {
    executable: String,
    port: u16,
}

/// A server that is stopped when this is dropped.
#[derive(Debug)]
pub struct Running(Child);

/// Why the program cannot stand for these options.
pub fn refusal(program: &Program) -> Option<&'static str> {
    let given = |name: &str| program.options.iter().any(|(key, _)| key == name);
    (program.id.starts_with("netperf-") && given("softirq")).then_some("`softirq` is a time of the model")
}

/// The number of clients.
pub fn clients(program: &Program) -> u32 {
    number(program, "instances").try_into().unwrap_or(1)
}

/// The arguments of a client. Without `time` it runs for the whole seconds that fit into the run.
pub fn arguments(program: &Program, server: &Server, duration: Nanos) -> Result<Vec<String>> {
    let seconds = whole_seconds(program, duration)?;
    let test = if program.id == "netperf-udp-rr" { "UDP_RR" } else { "TCP_RR" };
    let sizes = format!("{},{}", number(program, "request"), number(program, "response"));
    let words =
        ["-4", "-H", "127.0.0.1", "-p", &server.port.to_string(), "-t", test, "-l", &seconds.to_string(), "-P", "0"];
    Ok(words.into_iter().chain(["--", "-r", &sizes, "-o", COLUMNS]).map(str::to_owned).collect())
}

/// A number of an option, whose default is 1 for all of netperf's.
fn number(program: &Program, name: &str) -> i64 {
    let given = program.options.iter().find(|(key, _)| key == name);
    given.map_or(1, |(_, value)| if let OptionValue::Int(number) = value { *number } else { 1 })
}

impl Server {
    /// The server at a port that is free now.
    pub fn prepare(executable: &Path) -> Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let port = listener
            .and_then(|listener| listener.local_addr())
            .map_err(|error| AgentError::cannot(format!("127.0.0.1: {error}"), "ip link set lo up"))?;
        Ok(Server { executable: executable.to_string_lossy().into_owned(), port: port.port() })
    }

    /// Starts it and waits until it accepts connections.
    pub fn start(&self) -> std::io::Result<Running> {
        let port = self.port.to_string();
        let mut command = Command::new(&self.executable);
        command.args(["-D", "-N", "-4", "-L", "127.0.0.1", "-p", &port]).env("LC_ALL", "C");
        let mut running = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let until = clock::now() + READY;
        loop {
            match TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) {
                Ok(_) => return Ok(running),
                Err(error) if clock::now() > until || running.0.try_wait()?.is_some() => return Err(error),
                Err(_) => clock::sleep_until(clock::now() + 2 * MSEC),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A line of [`COLUMNS`] from each client. The percentiles of several clients cannot be put together.
pub fn parse(stdout: &str, clients: u32) -> std::result::Result<ParsedOutput, String> {
    let row = |line: &str| {
        let fields: Vec<f64> = line.split(',').map_while(|word| word.trim().parse().ok()).collect();
        <[f64; 6]>::try_from(fields).ok().filter(|row| row.iter().all(|value| value.is_finite() && *value >= 0.0))
    };
    let rows: Vec<[f64; 6]> = stdout.lines().filter_map(row).collect();
    let rate: f64 = rows.iter().map(|row| row[0]).sum();
    if rows.len() != clients as usize || rate <= 0.0 {
        return Err(format!("{} lines of {COLUMNS}, expected {clients} with a rate", rows.len()));
    }
    let mean = rows.iter().map(|row| row[0] * row[1]).sum::<f64>() / rate;
    let least = rows.iter().map(|row| row[4]).fold(f64::INFINITY, f64::min);
    let most = rows.iter().map(|row| row[5]).fold(0.0, f64::max);
    let mut stats = vec![("mean", mean), ("min", least), ("max", most)];
    if let [row] = rows[..] {
        stats.extend([("p50", row[2]), ("p99", row[3])]);
    }
    Ok(ParsedOutput {
        rates: vec![("transactions_per_second", rate)],
        stats: stats.into_iter().map(|(stat, value)| ("latency", stat.to_owned(), value)).collect(),
        ..ParsedOutput::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn program(id: &'static str, options: &[(&str, OptionValue)]) -> Program {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        Program { id, options, repeat: false, task_set: None }
    }

    #[test]
    fn the_command_line_has_the_options_of_the_workload() {
        let server = Server { executable: String::new(), port: 4242 };
        let line = |program: &Program, duration| arguments(program, &server, duration).map(|words| words.join(" "));
        let fixed = format!("-o {COLUMNS}");
        let given =
            [("request", OptionValue::Int(64)), ("time", OptionValue::Int(2)), ("instances", OptionValue::Int(3))];
        let udp = program("netperf-udp-rr", &given);
        let want = format!("-4 -H 127.0.0.1 -p 4242 -t UDP_RR -l 2 -P 0 -- -r 64,1 {fixed}");
        assert_eq!((line(&udp, SEC).unwrap(), clients(&udp)), (want, 3));
        // As many whole seconds as fit.
        let tcp = program("netperf-tcp-rr", &[]);
        let want = format!("-4 -H 127.0.0.1 -p 4242 -t TCP_RR -l 4 -P 0 -- -r 1,1 {fixed}");
        assert_eq!((line(&tcp, 5 * SEC).unwrap(), clients(&tcp)), (want, 1));
        assert!(line(&tcp, SEC).unwrap_err().to_string().contains("none fits into the run"));
        let part = program("netperf-tcp-rr", &[("time", OptionValue::Text("1500ms".into()))]);
        assert!(line(&part, 5 * SEC).unwrap_err().to_string().contains("in whole s"));
        assert_eq!(refusal(&tcp), None);
        assert!(refusal(&program("netperf-tcp-rr", &[("softirq", OptionValue::Text("1us".into()))])).is_some());
    }

    #[test]
    fn clients_are_added_up() {
        let stats = |text: &str, clients| {
            let found = parse(text, clients).unwrap();
            let stats: Vec<String> = found.stats.iter().map(|(_, stat, value)| format!("{stat} {value}")).collect();
            (found.rates[0].1, stats.join(" "))
        };
        let one = stats("1000.5,10.5,9,20,5,100\n", 1);
        assert_eq!(one, (1000.5, "mean 10.5 min 5 max 100 p50 9 p99 20".to_owned()));
        // Three of four transactions took 10 us, one 50.
        let two = stats("300,10,9,20,5,100\nnoise\n100,50,40,60,4,90\n", 2);
        assert_eq!(two, (400.0, "mean 20 min 4 max 100".to_owned()));
        let real = parse(include_str!("../../tests/programs/netperf-2.7.0.txt"), 1).unwrap();
        assert_eq!((real.rates.len(), real.stats.len()), (1, 5));
        assert!(parse("300,10,9,20,5,100\n", 2).unwrap_err().starts_with("1 lines of THROUGHPUT"));
    }

    proptest! {
        #[test]
        fn no_output_makes_the_parser_panic(text in "[0-9.,eE+\\n -]{0,200}", other in "\\PC{0,60}") {
            let _ = parse(&text, 2);
            let _ = parse(&other, 1);
        }
    }
}
