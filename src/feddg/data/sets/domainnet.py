"""DomainNet: 345 kinds of things in six styles, and the ten of them that FedBN and GA took."""

from dataclasses import replace
from pathlib import Path

from feddg.data.layouts import Benchmark
from feddg.data.listed import Found
from feddg.data.sets.photographs import TREE, spec
from feddg.data.spec import one_of

CLASSES = (
    "The_Eiffel_Tower The_Great_Wall_of_China The_Mona_Lisa aircraft_carrier airplane alarm_clock "
    "ambulance angel animal_migration ant anvil apple arm asparagus axe backpack banana bandage "
    "barn baseball baseball_bat basket basketball bat bathtub beach bear beard bed bee belt bench "
    "bicycle binoculars bird birthday_cake blackberry blueberry book boomerang bottlecap bowtie "
    "bracelet brain bread bridge broccoli broom bucket bulldozer bus bush butterfly cactus cake "
    "calculator calendar camel camera camouflage campfire candle cannon canoe car carrot castle "
    "cat ceiling_fan cell_phone cello chair chandelier church circle clarinet clock cloud "
    "coffee_cup compass computer cookie cooler couch cow crab crayon crocodile crown cruise_ship "
    "cup diamond dishwasher diving_board dog dolphin donut door dragon dresser drill drums duck "
    "dumbbell ear elbow elephant envelope eraser eye eyeglasses face fan feather fence finger "
    "fire_hydrant fireplace firetruck fish flamingo flashlight flip_flops floor_lamp flower "
    "flying_saucer foot fork frog frying_pan garden garden_hose giraffe goatee golf_club grapes "
    "grass guitar hamburger hammer hand harp hat headphones hedgehog helicopter helmet hexagon "
    "hockey_puck hockey_stick horse hospital hot_air_balloon hot_dog hot_tub hourglass house "
    "house_plant hurricane ice_cream jacket jail kangaroo key keyboard knee knife ladder lantern "
    "laptop leaf leg light_bulb lighter lighthouse lightning line lion lipstick lobster lollipop "
    "mailbox map marker matches megaphone mermaid microphone microwave monkey moon mosquito "
    "motorbike mountain mouse moustache mouth mug mushroom nail necklace nose ocean octagon "
    "octopus onion oven owl paint_can paintbrush palm_tree panda pants paper_clip parachute "
    "parrot passport peanut pear peas pencil penguin piano pickup_truck picture_frame pig pillow "
    "pineapple pizza pliers police_car pond pool popsicle postcard potato power_outlet purse "
    "rabbit raccoon radio rain rainbow rake remote_control rhinoceros rifle river roller_coaster "
    "rollerskates sailboat sandwich saw saxophone school_bus scissors scorpion screwdriver "
    "sea_turtle see_saw shark sheep shoe shorts shovel sink skateboard skull skyscraper "
    "sleeping_bag smiley_face snail snake snorkel snowflake snowman soccer_ball sock speedboat "
    "spider spoon spreadsheet square squiggle squirrel stairs star steak stereo stethoscope "
    "stitches stop_sign stove strawberry streetlight string_bean submarine suitcase sun swan "
    "sweater swing_set sword syringe t-shirt table teapot teddy-bear telephone television "
    "tennis_racquet tent tiger toaster toe toilet tooth toothbrush toothpaste tornado tractor "
    "traffic_light train tree triangle trombone truck trumpet umbrella underwear van vase violin "
    "washing_machine watermelon waterslide whale wheel windmill wine_bottle wine_glass wristwatch "
    "yoga zebra zigzag"
)
TEN = "bird feather headphones ice_cream teapot tiger whale windmill wine_glass zebra"

DOMAINNET = Benchmark(
    name="domainnet",
    domains={
        "clipart": ("clip",),
        "infograph": ("info",),
        "painting": ("paint",),
        "quickdraw": ("quick",),
        "real": (),
        "sketch": (),
    },
    classes=tuple(CLASSES.split()),
    gaps=True,
    published={
        "clipart": 48129, "infograph": 51605, "painting": 72266,
        "quickdraw": 172500, "real": 172947, "sketch": 69128,
    },
)  # fmt: skip
SUBSETS = {
    "345": DOMAINNET,
    "10": replace(DOMAINNET, classes=tuple(TEN.split()), part=True, gaps=False, published={}),
}


def survey(root: Path, classes: str = "345") -> Found:
    """`classes`: "345", or "10" for the subset."""
    return SUBSETS[classes].survey(root)


SPEC = spec(
    DOMAINNET,
    survey,
    {"classes": one_of("number of classes", SUBSETS)},
    title="DomainNet",
    summary="345 kinds of things in 6 styles, from clip art to quick drawings; or 10 kinds",
    size="586,575 images, 6 domains, 345 classes; 88 GB as uint8 at 224²",
    licence="fair use, for research (Peng et al., ICCV 2019)",
    source="https://ai.bu.edu/M3SDA (the cleaned version)",
    layout=TREE,
    layouts=(
        "domain_net/<domain>/<class> (DomainBed)",
        "domainnet/<domain>/<class> with splits/<domain>_{train,test}.txt (Dassl)",
        "<domain>/<class> with <domain>_{train,test}.txt beside (the archives)",
    ),
    notes="classes=10 takes FedBN's ten. The counts are of the cleaned version. GA's paper says"
    " 569,010 images, its author that these ten classes were meant.",
)
