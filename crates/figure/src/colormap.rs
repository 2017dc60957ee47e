//! Colour maps of heat maps: equally spaced anchor colours, linear in between.

use crate::layer::ColourMap;

/// Viridis by S. van der Walt and N. Smith (2015).
const VIRIDIS: [u32; 10] =
    [0x440154, 0x482878, 0x3E4A89, 0x31688E, 0x26828E, 0x1F9E89, 0x35B779, 0x6DCD59, 0xB4DE2C, 0xFDE725];
/// Cividis: Nuñez, Anderton & Renslow (2018), PLoS ONE 13, e0199239.
const CIVIDIS: [u32; 10] =
    [0x00204D, 0x00336F, 0x39486B, 0x575C6D, 0x707173, 0x8A8779, 0xA69D75, 0xC4B56C, 0xE4CF5B, 0xFFEA46];
/// Blue-white-red of ColorBrewer (Harrower & Brewer 2003), eleven classes.
const DIVERGING: [u32; 11] = [
    0x053061, 0x2166AC, 0x4393C3, 0x92C5DE, 0xD1E5F0, 0xF7F7F7, 0xFDDBC7, 0xF4A582, 0xD6604D, 0xB2182B,
    0x67001F,
];

impl ColourMap {
    /// Equally spaced anchor colours as 0xRRGGBB, from the low end to the high end.
    pub fn anchors(self) -> &'static [u32] {
        match self {
            Self::Viridis => &VIRIDIS,
            Self::Cividis => &CIVIDIS,
            Self::Diverging => &DIVERGING,
        }
    }

    /// Red, green and blue at `position` in [0, 1]; positions outside take the colour of the nearer end.
    pub fn rgb(self, position: f64) -> [u8; 3] {
        let anchors = self.anchors();
        let place = position.clamp(0.0, 1.0) * (anchors.len() - 1) as f64;
        let left = (place as usize).min(anchors.len() - 2);
        let weight = place - left as f64;
        [16, 8, 0].map(|shift| {
            let channel = |anchor: u32| f64::from(anchor >> shift & 0xFF);
            (channel(anchors[left]) * (1.0 - weight) + channel(anchors[left + 1]) * weight).round() as u8
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rec. 709 luma, a fair stand-in for lightness.
    fn luma([red, green, blue]: [u8; 3]) -> f64 {
        0.2126 * f64::from(red) + 0.7152 * f64::from(green) + 0.0722 * f64::from(blue)
    }

    #[test]
    fn sequential_maps_brighten_all_the_way() {
        for map in [ColourMap::Viridis, ColourMap::Cividis] {
            let lightness: Vec<f64> = (0..=40).map(|i| luma(map.rgb(f64::from(i) / 40.0))).collect();
            assert!(lightness.windows(2).all(|pair| pair[1] > pair[0]), "{map:?}");
        }
    }

    #[test]
    fn the_diverging_map_is_palest_in_the_middle_and_ends_are_anchors() {
        let middle = luma(ColourMap::Diverging.rgb(0.5));
        assert!((0..=20).all(|i| luma(ColourMap::Diverging.rgb(f64::from(i) / 20.0)) <= middle));
        assert_eq!(ColourMap::Viridis.rgb(-3.0), [0x44, 0x01, 0x54]);
        assert_eq!(ColourMap::Viridis.rgb(7.0), [0xFD, 0xE7, 0x25]);
    }
}
