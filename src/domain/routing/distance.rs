//! Distances over the Earth.

use super::objects::Location;

/// The mean radius of the Earth, in meters.
pub const RADIUS_M: f64 = 6_371_008.8;

/// Meters between two places (latitude, longitude), by haversine.
pub fn meters(from: (f64, f64), to: (f64, f64)) -> f64 {
    meters_on(RADIUS_M, from, to)
}

/// The same between two locations.
pub fn between(from: &Location, to: &Location) -> f64 {
    meters((from.latitude, from.longitude), (to.latitude, to.longitude))
}

fn meters_on(radius: f64, from: (f64, f64), to: (f64, f64)) -> f64 {
    let (from_latitude, to_latitude) = (from.0.to_radians(), to.0.to_radians());
    let latitude = ((to_latitude - from_latitude) / 2.0).sin();
    let longitude = ((to.1 - from.1).to_radians() / 2.0).sin();
    let part = latitude * latitude + from_latitude.cos() * to_latitude.cos() * longitude * longitude;
    // Rounding may carry it just above 1 for antipodes.
    2.0 * radius * part.sqrt().min(1.0).asin()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(meters: f64, km: f64) {
        assert!((meters / 1_000.0 - km).abs() < 5e-7, "{meters} m is not {km} km");
    }

    #[test]
    fn value_24_haversine() {
        let (nashville, los_angeles) = ((36.12, -86.67), (33.94, -118.40));
        is(meters(nashville, los_angeles), 2_886.448_430);
        is(meters_on(6_372_800.0, nashville, los_angeles), 2_887.259_951);
        is(meters((90.0, 0.0), (-90.0, 0.0)), 20_015.114_442);
        is(meters((0.0, 179.5), (0.0, -179.5)), 111.195_080);
        for step in 0..1_000 {
            let latitude = f64::from(step) * 0.09 - 45.0;
            let antipodes = meters((latitude, 12.3), (-latitude, 12.3 - 180.0));
            assert!(antipodes > 20_015_000.0, "{antipodes}");
        }
    }
}
