// What the page of a study does once it stands.

startFurniture();
startChoice();
startRuns();
startParallel();
startOver();
startHeat();
startFront();
choose(); // which lets every view be made, once
startCharts();
