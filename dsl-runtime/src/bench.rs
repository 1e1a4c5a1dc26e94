//! Timing kernels that a [`Runner`](crate::runner::Runner) runs.
//!
//! A runner puts tensors on the device, launches, and gives tensors back. [`record`] notes its launches on the way, with the
//! memory that they use; [`Recorded::time`] then repeats them without the copies: warm, over several copies of that memory,
//! so that nothing is found in the cache that the launch before left there, and many launches at a time as one graph, so that
//! the host's part is not in the time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cuda::Gpu;
use crate::device::{Backend, Device};
use crate::error::Error;
use crate::launch::{Arguments, Ready};
use crate::storage::Storage;

/// The launches that a device's handle is noting.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<Noted>>>);

struct Noted {
    ready: Ready,
    arguments: Arguments,
    /// What each buffer that the launch writes held before.
    before: Vec<(Storage, Storage)>,
}

impl Recorder {
    /// Notes a launch that is about to run.
    pub(crate) fn note(&self, ready: &Ready, arguments: &Arguments) -> Result<(), Error> {
        let ready = ready.on(&ready.device().without_recorder());
        let mut before: Vec<(Storage, Storage)> = Vec::new();
        for storage in arguments.written() {
            if !before.iter().any(|(known, _)| known.same(storage)) {
                before.push((storage.clone(), ready.device().copy_of(storage)?));
            }
        }
        let noted = Noted { ready, arguments: arguments.clone(), before };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
        Ok(())
    }
}

/// Runs `work` on a handle that notes its launches; gives what `work` gives, and the launches.
///
/// # Errors
/// What `work` returns, and [`Error::Device`] when it launches nothing or memory runs out.
pub fn record<T>(device: &Device, work: impl FnOnce(&Device) -> Result<T, Error>) -> Result<(T, Recorded), Error> {
    let recorder = Recorder::default();
    let outcome = work(&device.clone().with_recorder(recorder.clone()))?;
    let noted = std::mem::take(&mut *recorder.0.lock().unwrap_or_else(PoisonError::into_inner));
    let mut launches = Vec::new();
    let mut before: Vec<(Storage, Storage)> = Vec::new();
    for Noted { ready, arguments, before: held } in noted {
        launches.push((ready, arguments));
        for (storage, content) in held {
            // The first launch that writes a buffer saw what it held at the start.
            if !before.iter().any(|(known, _)| known.same(&storage)) {
                before.push((storage, content));
            }
        }
    }
    if launches.is_empty() {
        return Err(Error::Device("there is nothing to time: the run launched no kernel".to_owned()));
    }
    let device = device.without_recorder();
    let after = before.iter().map(|(storage, _)| device.bytes_of(storage)).collect::<Result<_, _>>()?;
    Ok((outcome, Recorded { device, launches, before, after }))
}

/// Launches that can be repeated.
pub struct Recorded {
    device: Device,
    launches: Vec<(Ready, Arguments)>,
    /// The buffers that are written, and what they held before the first launch.
    before: Vec<(Storage, Storage)>,
    /// What they held after the last.
    after: Vec<Vec<u8>>,
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// How long to run before anything is measured.
    pub warm_up: Duration,
    /// How many times are taken.
    pub samples: usize,
    /// How long the launches of one sample take together.
    pub sample_time: Duration,
    /// How long all samples take at most: fewer are taken then, but three.
    pub total: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            warm_up: Duration::from_millis(50),
            samples: 31,
            sample_time: Duration::from_millis(2),
            total: Duration::from_secs(5),
        }
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Seconds of one repetition of all launches, in increasing order.
    pub seconds: Vec<f64>,
    /// Repetitions in each sample.
    pub repetitions: usize,
    /// Copies of the tensors that they take turns on.
    pub copies: usize,
    /// Bytes of the tensors of one copy.
    pub copy_bytes: usize,
    /// Bytes that were put back before each repetition, in the measured time: small buffers that the launches change and
    /// read, as a counter of work.
    pub restored_bytes: usize,
    /// Whether a repetition gave the same bits as the run that was checked.
    pub repeats: bool,
}

impl Timing {
    /// The time that a share of the samples does not exceed: 0.5 for the median.
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.seconds.len().saturating_sub(1);
        let index = (share.clamp(0.0, 1.0) * last as f64).round() as usize;
        self.seconds.get(index).copied().unwrap_or(f64::NAN)
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Buffers that are larger are not put back before each repetition: what their elements are does not change the time.
const SMALL: usize = 64 * 1024;
/// The most copies of the tensors.
const MOST_COPIES: usize = 64;
/// The most repetitions in a sample.
const MOST_REPETITIONS: usize = 1000;

impl Recorded {
    /// Kernels of one repetition.
    pub fn kernels(&self) -> Vec<&str> {
        self.launches.iter().map(|(ready, _)| ready.kernel()).collect()
    }

    /// Bytes of all tensors, each counted once.
    pub fn bytes(&self) -> usize {
        self.storages().iter().map(Storage::len).sum()
    }

    fn storages(&self) -> Vec<Storage> {
        let mut found: Vec<Storage> = Vec::new();
        for storage in self.launches.iter().flat_map(|(_, arguments)| arguments.storages()) {
            if !found.iter().any(|known| known.same(storage)) {
                found.push(storage.clone());
            }
        }
        found
    }

    /// Repeats the launches on the memory that they were noted with, on a handle.
    fn repeat(&self, device: &Device, launches: &[(Ready, Arguments)]) -> Result<(), Error> {
        launches.iter().try_for_each(|(ready, arguments)| ready.on(device).launch(&mut arguments.clone()).map(drop))
    }

    fn put_back(&self, device: &Device, which: impl Fn(usize) -> bool) -> Result<(), Error> {
        let chosen = self.before.iter().filter(|(storage, _)| which(storage.len()));
        chosen.into_iter().try_for_each(|(storage, content)| device.copy(content, storage))
    }

    fn same_as_before(&self) -> Result<bool, Error> {
        for ((storage, _), after) in self.before.iter().zip(&self.after) {
            if self.device.bytes_of(storage)? != *after {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Measures, after finding out whether the launches can be repeated.
    ///
    /// # Errors
    /// What a launch returns, and [`Error::Device`] when memory for copies runs out.
    pub fn time(&self, plan: &Plan) -> Result<Timing, Error> {
        // From the same start, the same end; without it, only what the launches do not depend on.
        self.put_back(&self.device, |_| true)?;
        self.repeat(&self.device, &self.launches)?;
        let repeats = self.same_as_before()?;
        self.repeat(&self.device, &self.launches)?;
        let changes = !self.same_as_before()?;
        let restores = |bytes: usize| changes && bytes <= SMALL;
        let restored_bytes = self.before.iter().map(|(storage, _)| storage.len()).filter(|len| restores(*len)).sum();

        let copy_bytes = self.bytes();
        let copies = match self.device.backend() {
            Backend::Emulator => 1,
            Backend::Cuda(gpu) => copies_beyond_cache(gpu, copy_bytes)?,
        };
        let mut turns = vec![Turn { launches: self.launches.clone(), before: self.before.clone() }];
        for _ in 1..copies {
            turns.push(self.turn()?);
        }
        let one = |device: &Device, index: usize| -> Result<(), Error> {
            let Some(turn) = turns.get(index % turns.len()) else { return Ok(()) };
            for (storage, content) in turn.before.iter().filter(|(storage, _)| restores(storage.len())) {
                device.copy(content, storage)?;
            }
            self.repeat(device, &turn.launches)
        };
        self.measure(plan, one, |seconds, repetitions| Timing {
            seconds,
            repetitions,
            copies,
            copy_bytes,
            restored_bytes,
            repeats,
        })
    }

    fn measure(
        &self,
        plan: &Plan,
        one: impl Fn(&Device, usize) -> Result<(), Error>,
        timing: impl FnOnce(Vec<f64>, usize) -> Timing,
    ) -> Result<Timing, Error> {
        let device = &self.device;
        let timed = |work: &mut dyn FnMut() -> Result<(), Error>| -> Result<Duration, Error> {
            let start = device.record()?;
            work()?;
            start.until(&device.record()?)
        };
        device.synchronize()?;
        let (mut spent, mut done) = (Duration::ZERO, 0);
        let mut estimate = Duration::MAX;
        while done < 2 || spent < plan.warm_up {
            let took = timed(&mut || one(device, done))?;
            estimate = estimate.min(took);
            spent += took;
            done += 1;
        }
        let wanted = plan.sample_time.as_secs_f64() / estimate.as_secs_f64().max(1e-7);
        let repetitions = (wanted.ceil() as usize).clamp(1, MOST_REPETITIONS);
        let a_sample = estimate.as_secs_f64() * repetitions as f64;
        let samples = ((plan.total.as_secs_f64() / a_sample.max(1e-9)) as usize).clamp(3, plan.samples.max(3));

        let graph = match device.backend() {
            Backend::Emulator => None,
            Backend::Cuda(_) => {
                Some(device.capture(|capturing| (0..repetitions).try_for_each(|index| one(capturing, index)))?)
            }
        };
        let mut batch = || match &graph {
            Some(graph) => graph.launch(),
            None => (0..repetitions).try_for_each(|index| one(device, index)),
        };
        // The first launch of a graph also uploads it.
        batch()?;
        device.synchronize()?;
        let mut seconds = Vec::with_capacity(samples);
        for _ in 0..samples {
            seconds.push(timed(&mut batch)?.as_secs_f64() / repetitions as f64);
        }
        seconds.sort_unstable_by(f64::total_cmp);
        Ok(timing(seconds, repetitions))
    }

    /// The launches on memory of their own, with the same content.
    fn turn(&self) -> Result<Turn, Error> {
        let mut copies = Vec::new();
        for storage in self.storages() {
            let copy = self.device.copy_of(&storage)?;
            copies.push((storage, copy));
        }
        let instead = |storage: &Storage| {
            let found = copies.iter().find(|(original, _)| original.same(storage));
            found.map_or_else(|| storage.clone(), |(_, copy)| copy.clone())
        };
        let launches = self.launches.iter();
        Ok(Turn {
            launches: launches.map(|(ready, arguments)| (ready.clone(), arguments.with_storages(instead))).collect(),
            before: self.before.iter().map(|(storage, content)| (instead(storage), content.clone())).collect(),
        })
    }
}

/// The launches on one copy of the tensors.
struct Turn {
    launches: Vec<(Ready, Arguments)>,
    before: Vec<(Storage, Storage)>,
}

/// How many copies it takes that a launch finds nothing in the cache: all others together are twice as large.
fn copies_beyond_cache(gpu: &Gpu, copy_bytes: usize) -> Result<usize, Error> {
    let (cache, free) = (gpu.cache_bytes(), gpu.free_bytes()?);
    let wanted = (2 * cache).div_ceil(copy_bytes.max(1)) + 1;
    let room = free / 2 / copy_bytes.max(1);
    Ok(wanted.min(MOST_COPIES).min(room).max(1))
}

/// Bytes that the copy for [`copy_rate`] moves at a time, unless less memory is free.
const COPIED: usize = 1 << 30;

/// What the device's own copy engine reaches: bytes read and written a second, of a copy within its memory.
///
/// # Errors
/// [`Error::Device`] on the emulator, and when memory runs out.
pub fn copy_rate(device: &Device, plan: &Plan) -> Result<f64, Error> {
    let gpu = device.gpu().ok_or_else(|| Error::Device(format!("{device} has no memory to measure")))?;
    let bytes = COPIED.min(gpu.free_bytes()? / 4);
    let from = device.tensor_zeros::<u8, 1>([bytes])?;
    let to = device.tensor_zeros::<u8, 1>([bytes])?;
    let mut rates = Vec::new();
    for _ in 0..plan.samples.max(3) {
        let start = device.record()?;
        device.copy(&from.storage, &to.storage)?;
        rates.push(2.0 * bytes as f64 / start.until(&device.record()?)?.as_secs_f64());
    }
    rates.sort_unstable_by(f64::total_cmp);
    Ok(rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN))
}

/// What the device is, for reports: name and value.
///
/// # Errors
/// When the driver does not answer.
pub fn describe(device: &Device) -> Result<Vec<(&'static str, String)>, Error> {
    let mut facts = vec![("device", device.to_string()), ("target", device.target().to_string())];
    match device.gpu() {
        Some(gpu) => facts.extend(gpu.facts()?),
        None => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            facts.push(("host_cores", cores.to_string()));
        }
    }
    Ok(facts)
}
