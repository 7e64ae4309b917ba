//! Accepting survives a full file table. The test runs itself again in a process that may open few files.

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use provost_kernel::entropy::SeededEntropy;
    use provost_kernel::expose::edge::{Edge, EdgeSettings, Tls, serve};
    use provost_kernel::supervisor::Supervisor;
    use provost_kernel::time::SystemClock;
    use std::fs::File;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    const FEW: &str = "64";

    #[test]
    fn a_full_file_table_delays_accepting_and_does_not_end_it() {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max open files"))
            .unwrap();
        if line.split_whitespace().nth(3) == Some(FEW) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(fill_the_table());
            return;
        }
        let status = Command::new("sh")
            .args(["-c", &format!("ulimit -n {FEW} && exec \"$0\" --exact \"$1\"")])
            .arg(std::env::current_exe().unwrap())
            .arg("tests::a_full_file_table_delays_accepting_and_does_not_end_it")
            .status();
        assert!(status.unwrap().success());
    }

    async fn fill_the_table() {
        let warnings = Arc::new(AtomicUsize::new(0));
        tracing::subscriber::set_global_default(Warnings(Arc::clone(&warnings))).unwrap();
        let (settings, supervisor) = (EdgeSettings::default(), Supervisor::new());
        let edge = Edge::new(
            settings.clone(),
            Arc::new(SystemClock::new()),
            Arc::new(SeededEntropy::new(1)),
        );
        let router = edge.wrap(Router::new().route("/ok", get(|| async { "ok" })));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), supervisor.token());
        supervisor.spawn("server", async move {
            serve(listener, router, &settings, Tls::Off, stop).await.unwrap();
        });

        let mut files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        files.pop();
        // The client takes the last place; the server has none for its end.
        let mut client = TcpStream::connect(address).await.unwrap();
        client
            .write_all(b"GET /ok HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        while warnings.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(files);
        let mut answer = String::new();
        let read = client.read_to_string(&mut answer);
        tokio::time::timeout(Duration::from_secs(20), read)
            .await
            .unwrap()
            .unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"),
            "{answer}"
        );
        assert!(supervisor.stop(Duration::from_secs(20)).await.is_empty());
    }

    /// Counts warnings.
    struct Warnings(Arc<AtomicUsize>);

    impl tracing::Subscriber for Warnings {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() == tracing::Level::WARN
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, _: &tracing::Event<'_>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }
}
