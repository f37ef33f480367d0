//! The faults: their names, their injection, and the guarantees of the master.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::random::Random;
use super::record::{Kind, Record, now};
use super::world::{Start, World};
use super::{clock, disk, network, store, subscribers, unsynced};
use crate::support::clock::Clock;

/// The maximum time after a fault until the master accepts events again.
pub const RECOVERY: Duration = Duration::from_secs(40);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    MasterKilled,
    MinionKilled,
    ApiKilled,
    RedisKilled,
    MasterTerminated,
    StoreDamaged,
    DiskFull,
    NetworkStalled,
    NetworkCut,
    DescriptorsExhausted,
    SubscribersSlow,
    ClockJumps,
    PowerLost,
}

impl Fault {
    pub const ALL: [Fault; 13] = [
        Fault::MasterKilled,
        Fault::MinionKilled,
        Fault::ApiKilled,
        Fault::RedisKilled,
        Fault::MasterTerminated,
        Fault::StoreDamaged,
        Fault::DiskFull,
        Fault::NetworkStalled,
        Fault::NetworkCut,
        Fault::DescriptorsExhausted,
        Fault::SubscribersSlow,
        Fault::ClockJumps,
        Fault::PowerLost,
    ];

    /// Returns the faults of a run that names none: all but a loss of power, after which jobs in flight on the minion are
    /// missing, because their start is not flushed (docs/faults.md).
    pub fn routine() -> Vec<Fault> {
        Fault::ALL.into_iter().filter(|fault| *fault != Fault::PowerLost).collect()
    }

    pub fn name(self) -> &'static str {
        match self {
            Fault::MasterKilled => "master-killed",
            Fault::MinionKilled => "minion-killed",
            Fault::ApiKilled => "api-killed",
            Fault::RedisKilled => "redis-killed",
            Fault::MasterTerminated => "master-terminated",
            Fault::StoreDamaged => "store-damaged",
            Fault::DiskFull => "disk-full",
            Fault::NetworkStalled => "network-stalled",
            Fault::NetworkCut => "network-cut",
            Fault::DescriptorsExhausted => "descriptors-exhausted",
            Fault::SubscribersSlow => "subscribers-slow",
            Fault::ClockJumps => "clock-jumps",
            Fault::PowerLost => "power-lost",
        }
    }

    /// Whether pushed events, which are not acknowledged, may be lost in flight.
    pub fn may_lose_pushes(self) -> bool {
        matches!(
            self,
            Fault::MasterKilled | Fault::MasterTerminated | Fault::StoreDamaged | Fault::DiskFull | Fault::PowerLost
        )
    }

    /// Prepares the world before the master starts. Returns resources to hold during the round, or the reason to skip
    /// it.
    pub fn prepare(self, world: &mut World) -> Result<Prepared, String> {
        match self {
            Fault::DiskFull => return disk::SmallDisk::mount(&world.path("cache")).map(Prepared::Disk),
            Fault::DescriptorsExhausted => world.start_with(Start { descriptors: Some(64), ..Start::default() }),
            Fault::ClockJumps => {
                let clock = Clock::build(&world.path("clock"))?;
                world.start_with(Start { environment: clock.environment(), ..Start::default() });
                return Ok(Prepared::Clock(clock));
            }
            Fault::PowerLost => {
                let of = |name: &str, cache: &str| unsynced::Unsynced::build(&world.path(name), &world.path(cache));
                let (master, minion) = (of("power/master", "cache")?, of("power/minion", "real/cache")?);
                world.start_with(Start { environment: master.environment(), ..Start::default() });
                world.start_minion_with(minion.environment());
                return Ok(Prepared::Power(Box::new((master, minion))));
            }
            _ => {}
        }
        Ok(Prepared::Nothing)
    }

    /// Injects the fault at a random moment and waits until the master accepts events again.
    pub async fn inject(
        self,
        world: &mut World,
        prepared: &mut Prepared,
        random: &mut Random,
        record: &Arc<Record>,
    ) -> Result<Outcome, String> {
        tokio::time::sleep(random.millis(50, 2500)).await;
        let mut outcome = Outcome::default();
        match (self, prepared) {
            (Fault::MasterKilled, _) => {
                world.kill_master();
                world.start_master().await?;
            }
            (Fault::MinionKilled, _) => {
                world.kill_minion();
                world.start_minion().await?;
            }
            (Fault::ApiKilled, _) => {
                world.kill_api();
                world.start_api().await?;
            }
            (Fault::RedisKilled, _) => world.redis.kill_for_a_while(random).await?,
            (Fault::MasterTerminated, _) => {
                world.stop_master().await?;
                world.start_master().await?;
            }
            (Fault::StoreDamaged, _) => outcome.damage = store::damage(world, random).await?,
            (Fault::DiskFull, Prepared::Disk(disk)) => disk.fill_and_free(random, record).await?,
            (Fault::NetworkStalled, _) => network::stall(world).await,
            (Fault::NetworkCut, _) => network::cut(world, random).await,
            (Fault::DescriptorsExhausted, _) => network::exhaust_descriptors(world).await?,
            (Fault::SubscribersSlow, _) => outcome.received = subscribers::slow(world, record).await?,
            (Fault::ClockJumps, Prepared::Clock(clock)) => clock::jump(clock, record).await?,
            (Fault::PowerLost, Prepared::Power(disks)) => {
                let (master, minion) = &mut **disks;
                world.kill_all();
                let lost = master.lose(random)? + minion.lose(random)?;
                eprintln!("power lost: {lost} unflushed writes and names are lost");
                world.start_master().await?;
                world.start_minion().await?;
                world.start_api().await?;
            }
            (Fault::DiskFull | Fault::ClockJumps | Fault::PowerLost, _) => {
                return Err(format!("{} was not prepared", self.name()));
            }
        }
        outcome.recovered = now();
        record.more_events(10, RECOVERY).await?;
        record.more(Kind::Hook, 5, RECOVERY).await?;
        world.check_daemons()?;
        Ok(outcome)
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = Fault::ALL.into_iter().find(|fault| fault.name() == text);
        let names = Fault::ALL.map(Fault::name).join(", ");
        fault.ok_or_else(|| format!("expected one of {names}, got '{text}'"))
    }
}

/// The preparations of a fault, undone at the end of the round.
pub enum Prepared {
    Nothing,
    Disk(disk::SmallDisk),
    Clock(Clock),
    /// The disks of the master and of the minion.
    Power(Box<(unsynced::Unsynced, unsynced::Unsynced)>),
}

/// The outcome of a fault, for the ledger.
#[derive(Default)]
pub struct Outcome {
    /// The time of recovery, in milliseconds since 1970.
    pub recovered: u64,
    /// The time of the damage, if the master has started with an empty store.
    pub damage: Option<u64>,
    /// The received sequence numbers of each slow subscriber, in order.
    pub received: Vec<Vec<u64>>,
}
