"""Office-Home: 65 kinds of things from office and home in four styles."""

from feddg.data.layouts import Benchmark
from feddg.data.sets.photographs import TREE, spec

CLASSES = (
    "Alarm_Clock Backpack Batteries Bed Bike Bottle Bucket Calculator Calendar Candles Chair"
    " Clipboards Computer Couch Curtains Desk_Lamp Drill Eraser Exit_Sign Fan File_Cabinet"
    " Flipflops Flowers Folder Fork Glasses Hammer Helmet Kettle Keyboard Knives Lamp_Shade Laptop"
    " Marker Monitor Mop Mouse Mug Notebook Oven Pan Paper_Clip Pen Pencil Postit_Notes Printer"
    " Push_Pin Radio Refrigerator Ruler Scissors Screwdriver Shelf Sink Sneakers Soda Speaker Spoon"
    " TV Table Telephone ToothBrush Toys Trash_Can Webcam"
)

OFFICE_HOME = Benchmark(
    name="office-home",
    domains={"art": (), "clipart": (), "product": (), "real_world": ("real",)},
    classes=tuple(CLASSES.split()),
    published={"art": 2427, "clipart": 4365, "product": 4439, "real_world": 4357},
)

SPEC = spec(
    OFFICE_HOME,
    title="Office-Home",
    summary="65 kinds of things in 4 styles: art, clip art, product pictures, photographs",
    size="15,588 images, 4 domains, 65 classes; 2.3 GB as uint8 at 224²",
    licence="none given; for research (Venkateswara et al., CVPR 2017)",
    source="https://www.hemanthdv.org/officeHomeDataset.html",
    layout=TREE,
    layouts=(
        "{Art,Clipart,Product,Real World}/<class> (the archive, DomainBed)",
        "office_home_dg/<domain>/{train,val}/<class> (Dassl)",
        "with <Domain>_img_label_list.txt (GA): all images, no split",
    ),
)
