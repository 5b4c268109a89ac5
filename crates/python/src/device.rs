//! A drive within a Python process (`python/flashatlas/serving/device.py`).

use crate::environment::environment;
use crate::{DriveError, InputError, PowerLost, guarded, to_python};
use flashatlas_serve::{
    Clock, Disk, Memory, Open, Refused, ServeError, ServeSpec, Server, on_file,
};
use flashatlas_sim::Precondition;
use flashatlas_types::Ps;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Number of flash operations until the power fails, if no power failure was asked for.
///
/// The operations are counted by the decrease of this number.
const ENOUGH: u64 = 1 << 62;

/// Clock that stands still, because simulated time advances only with the commands.
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Ps {
        Ps::ZERO
    }

    fn sleep_until(&self, _: Ps) {}
}

/// A drive whose image is in a file or in memory; see `flashatlas.Device`.
#[pyclass]
pub struct Device {
    plan: ServeSpec,
    memory: Memory,
    server: Option<Server<NoClock>>,
    /// Operations until the power failure when it was last set, and operations counted before that.
    power: (u64, u64),
}

fn refused(why: &Refused) -> PyErr {
    match why {
        Refused::Range(why) => InputError::new_err(why.clone()),
        Refused::PowerLost => PowerLost::new_err(why.to_string()),
        Refused::NoSpace(why)
        | Refused::ReadOnly(why)
        | Refused::Unreadable(why)
        | Refused::Failed(why) => DriveError::new_err(why.clone()),
    }
}

#[pymethods]
impl Device {
    /// Returns a drive that is off, from the JSON of a `ServeSpec`.
    #[new]
    fn new(plan: &str) -> PyResult<Device> {
        let plan: ServeSpec = serde_json::from_str(plan)
            .map_err(|e| InputError::new_err(format!("the plan cannot be read: {e}")))?;
        Ok(Device { plan, memory: Memory::default(), server: None, power: (0, 0) })
    }

    /// Mounts the image; with `cut_after`, the power fails after this number of flash operations.
    ///
    /// Returns the numbers of the image's damaged frames, and of the blocks with damaged records.
    fn power_on(
        &mut self,
        py: Python<'_>,
        cut_after: Option<u64>,
    ) -> PyResult<(Vec<u32>, Vec<u32>)> {
        self.server = None;
        self.power = (cut_after.unwrap_or(ENOUGH), 0);
        self.plan.cut_after = Some(self.power.0);
        let (plan, memory) = (&self.plan, self.memory.clone());
        let begun = guarded(py, None, |_| {
            let in_memory = || Box::new(move || Ok(Box::new(memory) as Box<dyn Disk>)) as Open<'_>;
            let open = on_file(plan).unwrap_or_else(in_memory);
            Ok(Server::begin_on(plan, &environment(), Some(open), NoClock))
        })?;
        if matches!(begun, Ok(_) | Err(ServeError::PowerLost)) {
            // from now on, the image decides the content of the drive, not the precondition
            self.plan.checkpoint = None;
            self.plan.precondition = Precondition::None;
        }
        let server = begun.map_err(|error| match error {
            ServeError::Run(error) => to_python(&error),
            ServeError::Image(..) => InputError::new_err(error.to_string()),
            ServeError::PowerLost => PowerLost::new_err(error.to_string()),
        })?;
        let found = server.found();
        let damaged = found.damaged.iter().map(|frame| frame.0).collect();
        let damaged_blocks = found.damaged_blocks.iter().map(|block| block.number()).collect();
        self.server = Some(server);
        Ok((damaged, damaged_blocks))
    }

    /// Returns the size of the drive and of a mapping unit, in bytes.
    fn sizes(&self) -> PyResult<(u64, u32)> {
        let server = self.on()?;
        Ok((server.bytes(), server.unit_bytes()))
    }

    /// Returns the number of flash operations since the power was switched on.
    fn operations(&self) -> PyResult<u64> {
        let left = self.on()?.operations_until_cut().map_err(|why| refused(&why))?;
        Ok(self.power.1 + self.power.0 - left.unwrap_or(0))
    }

    /// Schedules a power failure in the flash operation after the next `operations` operations.
    fn cut_after(&mut self, operations: u64) -> PyResult<()> {
        let counted = self.operations()?;
        self.on()?.cut_after(operations).map_err(|why| refused(&why))?;
        self.power = (operations, counted);
        Ok(())
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        count: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = vec![0; count];
        self.carry_out(py, |server| server.read(&mut out, offset))?;
        Ok(PyBytes::new(py, &out))
    }

    fn write(&self, py: Python<'_>, data: &[u8], offset: u64, fua: bool) -> PyResult<()> {
        self.carry_out(py, |server| server.write(data, offset, fua))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.carry_out(py, Server::flush)
    }

    fn trim(&self, py: Python<'_>, offset: u64, count: u64) -> PyResult<()> {
        self.carry_out(py, |server| server.trim(offset, count, false))
    }

    fn zero(&self, py: Python<'_>, offset: u64, count: u64) -> PyResult<()> {
        self.carry_out(py, |server| server.zero(offset, count, true, false))
    }

    /// Makes data durable, switches the power off, and returns the record with its tables (JSON).
    fn power_off(&mut self, py: Python<'_>) -> PyResult<String> {
        self.on()?;
        let server = self.server.take().expect("it is on");
        let gone = server.gone();
        let ended = guarded(py, None, |_| Ok(server.end_in(&environment())))?;
        match (gone, ended.record) {
            (Some(why), _) => Err(refused(&why)),
            (None, Some(record)) => Ok(record.to_string()),
            (None, None) => {
                let why = ended.complaint.unwrap_or_default();
                Err(match server.gone() {
                    Some(Refused::PowerLost) => PowerLost::new_err(why),
                    _ => DriveError::new_err(why),
                })
            }
        }
    }
}

impl Device {
    fn on(&self) -> PyResult<&Server<NoClock>> {
        self.server
            .as_ref()
            .ok_or_else(|| DriveError::new_err("the power of the drive is off (power_on)"))
    }

    fn carry_out(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Server<NoClock>) -> Result<(), Refused> + Send,
    ) -> PyResult<()> {
        let server = self.on()?;
        guarded(py, None, |_| Ok(work(server)))?.map_err(|why| refused(&why))
    }
}
